import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import { createAccessBook } from './access-rules.ts';
import { hashNotifyPassword } from './notify-password.ts';
import { createNotifyUsers } from './notify-users.ts';
import { openUserDirectory } from './open-user-directory.ts';

const passwordHash = await hashNotifyPassword('secret');
const basic = (name: string): string => `Basic ${Buffer.from(`${name}:secret`).toString('base64')}`;
const isRejected = (error: unknown): boolean => hasCode(error, 'NOTIFY_REJECTED');

function changed(directory: { onChanged(listener: () => void): void }): Promise<void> {
  return new Promise((resolve) => directory.onChanged(resolve));
}

test('a user added by one process can authenticate in another until it is removed', async () => {
  await using db = openMemory();
  await using one = await openUserDirectory(db.store);
  await using other = await openUserDirectory(db.store);
  const users = createNotifyUsers({ directory: other });
  await assert.rejects(users.authenticate(basic('ann')), isRejected);
  const added = changed(other);
  await one.change(() => ({ kind: 'user-set', name: 'ann', passwordHash }));
  await added;
  const ann = await users.authenticate(basic('ann'));
  assert.deepEqual(ann, { name: 'ann', role: 'user' });
  const removed = changed(other);
  await one.change(() => ({ kind: 'user-removed', name: 'ann' }));
  await removed;
  await assert.rejects(users.authenticate(basic('ann')), isRejected);
  assert.equal(users.isKnown({ name: 'ann', role: 'user' }), false);
});

test('changes survive a restart, and the configuration has precedence', async () => {
  await using db = openMemory();
  {
    await using before = await openUserDirectory(db.store);
    await before.change(() => ({ kind: 'user-set', name: 'ann', passwordHash }));
    await before.change(() => ({ kind: 'user-set', name: 'bob', passwordHash }));
    const rule = { user: 'ann', topic: 'a-*', permission: 'read-only' } as const;
    await before.change(() => ({ kind: 'access-set', ...rule }));
  }
  const other = await hashNotifyPassword('other');
  await using after = await openUserDirectory(db.store, {
    users: [{ name: 'ann', passwordHash: other, role: 'admin' }],
  });
  assert.deepEqual(
    after.users.map(({ name, role, isProvisioned }) => [name, role, isProvisioned]),
    [
      ['ann', 'admin', true],
      ['bob', 'user', false],
    ],
  );
  assert.equal(after.find('ann')?.passwordHash, other);
  const book = createAccessBook(after, 'deny');
  assert.equal(book.may({ name: 'ann', role: 'user' }, 'a-1', 'read'), true);
  await after.change(() => ({ kind: 'access-removed', user: 'ann' }));
  assert.equal(book.may({ name: 'ann', role: 'user' }, 'a-1', 'read'), false);
});

test('of two concurrent changes, the second decides on the result of the first', async () => {
  await using db = openMemory();
  await using one = await openUserDirectory(db.store);
  await using other = await openUserDirectory(db.store);
  const seen: number[] = [];
  await Promise.all(
    [one, other].map((directory, at) =>
      directory.change((book) => {
        seen.push(book.users.length);
        return { kind: 'user-set', name: `u${at}`, passwordHash };
      }),
    ),
  );
  assert.deepEqual(
    seen.toSorted((a, b) => a - b),
    [0, 0, 1],
  );
  await one.change(() => ({ kind: 'access-removed' }));
  assert.equal(one.users.length, 2);
});

test('the store contains no passwords, and ordinary readers skip the stream', async () => {
  await using db = openMemory();
  await using directory = await openUserDirectory(db.store);
  await directory.change(() => ({ kind: 'user-set', name: 'ann', passwordHash }));
  const kept = await db.store.readAll({ filter: { system: true } }).toArray();
  assert.equal(kept.length, 1);
  assert.equal(JSON.stringify(kept).includes('secret'), false);
  assert.deepEqual(await db.store.readAll().toArray(), []);
});

const unreadable = {
  type: '$notify-user-gone',
  eventId: 'e-1',
  occurredAt: new Date(0).toISOString(),
  correlationId: 'e-1',
  tenant: '',
  aggregate: { bc: '', type: '', id: '$millrace-notify-users' },
  payload: {},
};

test('an unreadable event ends the stream: a later start ignores all of its users', async () => {
  await using db = openMemory();
  await db.store.append('$millrace-notify-users', [unreadable], { expected: 'any', system: true });
  await using directory = await openUserDirectory(db.store);
  await directory.change(() => ({ kind: 'user-set', name: 'bob', passwordHash }));
  await using again = await openUserDirectory(db.store);
  assert.deepEqual(
    again.users.map(({ name }) => name),
    ['bob'],
  );
});

test('after an unreadable event, only the users of the configuration are known', async () => {
  await using db = openMemory();
  await using directory = await openUserDirectory(db.store, {
    users: [{ name: 'ann', passwordHash }],
  });
  await directory.change(() => ({ kind: 'user-set', name: 'bob', passwordHash }));
  assert.deepEqual(
    directory.users.map(({ name }) => name),
    ['ann', 'bob'],
  );
  const removed = changed(directory);
  await db.store.append('$millrace-notify-users', [unreadable], { expected: 'any', system: true });
  await removed;
  assert.deepEqual(
    directory.users.map(({ name }) => name),
    ['ann'],
  );
  assert.equal(directory.find('bob'), undefined);
});
