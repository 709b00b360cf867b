import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import type { ErrorCode } from '../../foundation/error-codes.ts';
import type { EventStore } from '../../store/event-store.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { openTokens, type Tokens } from './open-tokens.ts';
import { tokensStream } from './token-book.ts';
import { createTokenSecret, tokenIdOf, type NewToken } from './token.ts';

const reader: NewToken = { name: 'shop', scopes: ['read'] };

async function opened(): Promise<{ store: EventStore; tokens: Tokens } & AsyncDisposable> {
  const store = openMemory().store;
  const tokens = await openTokens(store);
  return {
    store,
    tokens,
    async [Symbol.asyncDispose]() {
      await tokens[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const rejects = (code: ErrorCode, work: () => Promise<unknown>): Promise<void> =>
  assert.rejects(work, (error) => hasCode(error, code));

describe('tokens', () => {
  test('a secret is accepted alone, or with the name or id of its token', async () => {
    await using home = await opened();
    const { token, secret } = await home.tokens.create({ ...reader, tenant: 'core', by: 'ann' });
    assert.equal(token.createdBy, 'ann');
    for (const name of [undefined, 'shop', token.id]) {
      assert.deepEqual(home.tokens.verify(secret, name)?.token, token);
    }
    assert.equal(home.tokens.verify(secret, 'ship'), undefined);
    const other = createTokenSecret(token.id);
    for (const wrong of ['', 'mr_', secret.slice(0, -1), `${secret}A`, other]) {
      assert.equal(home.tokens.verify(wrong), undefined);
    }
    assert.equal(tokenIdOf(secret), token.id);
  });

  test('the secret itself is not stored, and ordinary readers do not get the stream', async () => {
    await using home = await opened();
    const { secret } = await home.tokens.create(reader);
    const records = await home.store.readAll({ filter: { system: true } }).toArray();
    assert.equal(records.length, 1);
    const random = secret.slice(-43);
    assert.equal(JSON.stringify(records).includes(random), false);
    assert.deepEqual(await home.store.readAll().toArray(), []);
  });

  test('ordinary callers cannot append to the stream of tokens, delete it or change its metadata', async () => {
    await using home = await opened();
    await home.tokens.create(reader);
    const [event] = await home.store.readStream(tokensStream).toArray();
    assert.ok(event);
    await rejects('NAME_INVALID', () => home.store.append(tokensStream, [event]));
    await rejects('NAME_INVALID', () => home.store.deleteStream(tokensStream));
    await rejects('NAME_INVALID', () => home.store.tombstoneStream(tokensStream));
    await rejects('NAME_INVALID', () =>
      home.store.setStreamMetadata(tokensStream, { truncateBefore: 1 }),
    );
  });

  test('a revoked token is rejected at once, and its signal fires', async () => {
    await using home = await opened();
    const { token, secret } = await home.tokens.create(reader);
    const ended = home.tokens.verify(secret)?.ended;
    const revoked = await home.tokens.revoke('shop', { by: 'bob' });
    assert.equal(revoked.revokedBy, 'bob');
    assert.equal(ended?.aborted, true);
    assert.equal(home.tokens.verify(secret), undefined);
    await rejects('TOKEN_UNKNOWN', () => home.tokens.revoke(token.id));
    assert.equal((await home.tokens.create(reader)).token.name, 'shop');
    assert.deepEqual(
      (await home.tokens.list()).map(({ name, revokedAt }) => [name, revokedAt !== undefined]),
      [
        ['shop', true],
        ['shop', false],
      ],
    );
  });

  test('tokens that one process creates and revokes are known to the others', async () => {
    await using home = await opened();
    await using other = await openTokens(home.store);
    const { secret } = await home.tokens.create(reader);
    await other.list();
    const ended = other.verify(secret)?.ended;
    assert.ok(ended);
    const fired = once(ended, 'abort');
    await home.tokens.revoke('shop');
    await fired;
    assert.equal(other.verify(secret), undefined);
  });

  test('a token that has expired is rejected, and its signal fires when it does', async () => {
    const clock = fakeClock();
    await using store = openMemory({ clock }).store;
    await using tokens = await openTokens(store, { clock });
    const inMs = (ms: number): string => new Date(clock.now() + ms).toISOString();
    const yearMs = 365 * 86_400_000;
    const { secret } = await tokens.create({ ...reader, expiresAt: inMs(yearMs) });
    const ended = tokens.verify(secret)?.ended;
    await clock.advance(yearMs - 1);
    assert.equal(ended?.aborted, false);
    await clock.advance(1);
    assert.equal(ended?.aborted, true);
    assert.equal(tokens.verify(secret), undefined);
    await rejects('TOKEN_INVALID', () => tokens.create({ ...reader, expiresAt: inMs(0) }));
  });

  test('only one of several concurrent creations with the same name succeeds', async () => {
    await using home = await opened();
    await using other = await openTokens(home.store);
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) =>
        (at % 2 === 0 ? home.tokens : other).create(
          at < 10 ? reader : { ...reader, name: `t${at}` },
        ),
      ),
    );
    const failed = results.filter((result) => result.status === 'rejected');
    assert.equal(failed.length, 9);
    assert.ok(failed.every(({ reason }) => hasCode(reason, 'TOKEN_EXISTS')));
    assert.equal((await home.tokens.list()).length, 11);
  });

  test('the error for an invalid token names the field', async () => {
    await using home = await opened();
    const wrong: readonly Partial<NewToken>[] = [
      { name: '' },
      { name: 'a:b' },
      { name: 'Shop' },
      { name: 'a'.repeat(61) },
      { scopes: [] },
      { scopes: ['all' as 'admin'] },
      { expiresAt: 'soon' },
      { by: 'b'.repeat(121) },
    ];
    for (const each of wrong) {
      await rejects('TOKEN_INVALID', () => home.tokens.create({ ...reader, ...each }));
    }
    await rejects('NAME_INVALID', () => home.tokens.create({ ...reader, tenant: 'A b' }));
    assert.deepEqual(await home.tokens.list(), []);
  });

  test('no tenant of a token may be a prefix of another: some streams would belong to both', async () => {
    await using home = await opened();
    await home.tokens.create({ ...reader, tenant: 'demo-za' });
    assert.equal(home.tokens.tenants.has('demo-za'), true);
    await rejects('TENANT_OVERLAP', () =>
      home.tokens.create({ ...reader, name: 'other', tenant: 'demo' }),
    );
  });

  test('a tenant without a token is recorded once, and known to every process', async () => {
    await using home = await opened();
    await Promise.all(Array.from({ length: 20 }, () => home.tokens.addTenant('demo-za')));
    await home.tokens.addTenant('demo-za');
    const events = await home.store.readStream(tokensStream).toArray();
    assert.deepEqual(
      events.map(({ type, payload }) => [type, payload]),
      [['$tenant-added', { tenant: 'demo-za' }]],
    );
    await rejects('TENANT_OVERLAP', () => home.tokens.addTenant('demo'));
    await rejects('NAME_INVALID', () => home.tokens.addTenant('A b'));
    await using other = await openTokens(home.store);
    await rejects('TENANT_OVERLAP', () => other.create({ ...reader, tenant: 'demo-za-x' }));
  });

  test('after an unreadable record, all tokens are rejected', async () => {
    await using home = await opened();
    const { secret } = await home.tokens.create(reader);
    const [event] = await home.store.readStream(tokensStream).toArray();
    assert.ok(event);
    const damaged = { ...event, eventId: 'x', type: '$token-revoked', payload: null };
    const ended = home.tokens.verify(secret)?.ended;
    assert.ok(ended);
    const fired = once(ended, 'abort');
    await home.store.append(tokensStream, [damaged], { system: true });
    await fired;
    assert.equal(home.tokens.verify(secret), undefined);
    // The next start begins a new stream, in which none of the old tokens exist.
    await using again = await openTokens(home.store);
    assert.deepEqual([again.verify(secret), await again.list()], [undefined, []]);
    const { secret: other } = await again.create(reader);
    await using last = await openTokens(home.store);
    assert.ok(last.verify(other));
  });
});
