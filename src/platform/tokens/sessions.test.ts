import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import type { EventStore } from '../../store/event-store.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { openTokens, type Tokens } from './open-tokens.ts';
import { sessionLimits } from './sessions.ts';

const clock = fakeClock();

async function opened(): Promise<{ store: EventStore; tokens: Tokens } & AsyncDisposable> {
  const store = openMemory({ clock }).store;
  const tokens = await openTokens(store, { clock });
  return {
    store,
    tokens,
    async [Symbol.asyncDispose]() {
      await tokens[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const isRejected = (error: unknown): boolean => hasCode(error, 'NOT_AUTHENTICATED');

describe('sessions', () => {
  test('a session has the rights of its token, and is accepted only as a session', async () => {
    await using home = await opened();
    const { tokens } = home;
    const { token, secret } = await tokens.create({
      name: 'ops',
      scopes: ['operate'],
      tenant: 'core',
    });
    const { secret: session } = await tokens.openSession({ token });
    const found = tokens.verifySession(session)?.token;
    assert.deepEqual([found?.scopes, found?.tenant], [['operate'], 'core']);
    assert.deepEqual([found?.actor, found?.parent], [{ kind: 'token', name: 'ops' }, token.id]);
    assert.equal(tokens.verify(session), undefined);
    assert.equal(tokens.verifySession(secret), undefined);
    // A session that opens sessions would never end.
    assert.ok(found);
    const isUnknown = (error: unknown): boolean => hasCode(error, 'TOKEN_UNKNOWN');
    await assert.rejects(() => tokens.openSession({ token: found }), isUnknown);
    await assert.rejects(() => tokens.createLink(found.id), isUnknown);
    assert.deepEqual(
      (await tokens.list()).map(({ name }) => name),
      ['ops'],
    );
  });

  test('a session ends with its token, after twelve hours, and by signing out', async () => {
    await using home = await opened();
    const { tokens } = home;
    const { token } = await tokens.create({ name: 'ops', scopes: ['admin'] });
    const open = async (): Promise<string> => (await tokens.openSession({ token })).secret;
    const [late, out, revoked] = [await open(), await open(), await open()];
    await tokens.endSession(out);
    assert.equal(tokens.verifySession(out), undefined);
    const ended = tokens.verifySession(revoked)?.ended;
    await tokens.revoke('ops');
    assert.deepEqual([ended?.aborted, tokens.verifySession(revoked)], [true, undefined]);
    assert.equal(tokens.verifySession(late), undefined);

    const other = await tokens.create({ name: 'other', scopes: ['read'] });
    const { secret } = await tokens.openSession({ token: other.token });
    await clock.advance(sessionLimits.sessionMsMax - 1);
    assert.ok(tokens.verifySession(secret));
    await clock.advance(1);
    assert.equal(tokens.verifySession(secret), undefined);
  });

  test('a session does not outlive credentials that expire earlier', async () => {
    await using home = await opened();
    const { tokens } = home;
    const expiresAt = new Date(clock.now() + 60_000).toISOString();
    const { token } = await tokens.create({ name: 'short', scopes: ['read'], expiresAt });
    assert.equal((await tokens.openSession({ token })).expiresAt, expiresAt);
    const person = { kind: 'jwt', name: 'ada', email: 'ada@example.com' } as const;
    const jwt = await tokens.openSession({
      scopes: ['read'],
      actor: person,
      expiresAtMs: clock.now() + 30_000,
    });
    assert.deepEqual(tokens.verifySession(jwt.secret)?.token.actor, person);
    await clock.advance(30_000);
    assert.equal(tokens.verifySession(jwt.secret), undefined);
  });

  test('a link works once, within ten minutes, also in another process, and is stored as a hash', async () => {
    await using home = await opened();
    const { tokens, store } = home;
    await tokens.create({ name: 'admin', scopes: ['admin'] });
    const { code } = await tokens.createLink('admin', { by: 'test' });
    await using other = await openTokens(store, { clock });
    const uses = await Promise.allSettled(
      [tokens, other, tokens].map((each) => each.useLink(code)),
    );
    assert.equal(uses.filter(({ status }) => status === 'fulfilled').length, 1);
    await assert.rejects(() => tokens.useLink(code), isRejected);
    assert.deepEqual([tokens.verify(code), tokens.verifySession(code)], [undefined, undefined]);
    const records = await store.readAll({ filter: { system: true } }).toArray();
    assert.equal(JSON.stringify(records).includes(code.slice(-43)), false);

    const late = await tokens.createLink('admin');
    await clock.advance(sessionLimits.linkMs);
    await assert.rejects(() => tokens.useLink(late.code), isRejected);
    const orphan = await tokens.createLink('admin');
    await tokens.revoke('admin');
    await assert.rejects(() => tokens.useLink(orphan.code), isRejected);
    await assert.rejects(
      () => tokens.createLink('admin'),
      (error) => hasCode(error, 'TOKEN_UNKNOWN'),
    );
  });
});
