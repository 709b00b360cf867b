import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError, hasCode } from './error.ts';
import { lazyRoles } from './lazy-roles.ts';

/** Three roles that write each step to `steps`; `plain` has nothing to close. */
function rig(failing: readonly string[] = []) {
  const steps: string[] = [];
  const close = async (name: string): Promise<void> => {
    steps.push(`close ${name}`);
    if (failing.includes(name)) throw new Error(`${name} failed`);
    await Promise.resolve();
    steps.push(`closed ${name}`);
  };
  const role = (name: string) => () => {
    steps.push(`create ${name}`);
    return { name, [Symbol.asyncDispose]: () => close(name) };
  };
  const handle = lazyRoles<{
    store: { readonly name: string };
    bus: { readonly name: string };
    plain: { readonly name: string };
  }>(
    {
      store: role('store'),
      bus: role('bus'),
      plain() {
        steps.push('create plain');
        return { name: 'plain' };
      },
    },
    {
      close: () => close('connection'),
      closedError: () => new MillraceError('STORE_CLOSED', 'the engine is closed'),
    },
  );
  return { steps, handle };
}

test('a role is created on first access, once', () => {
  const { steps, handle } = rig();
  assert.deepEqual(steps, []);
  const { bus } = handle;
  assert.deepEqual(steps, ['create bus']);
  assert.equal(handle.bus, bus);
  assert.equal(bus.name, 'bus');
  assert.deepEqual(steps, ['create bus']);
});

test('listing the names of the roles creates none', () => {
  const { steps, handle } = rig();
  assert.deepEqual(Object.keys(handle), ['store', 'bus', 'plain']);
  assert.ok('store' in handle);
  assert.deepEqual(steps, []);
});

test('a failed role is created again by the next access', () => {
  let attempts = 0;
  const handle = lazyRoles<{ store: object }>(
    {
      store() {
        attempts += 1;
        if (attempts === 1) throw new Error('unavailable');
        return {};
      },
    },
    { close: async () => undefined, closedError: () => new Error('closed') },
  );
  assert.throws(() => handle.store, /unavailable/);
  assert.equal(handle.store, handle.store);
  assert.equal(attempts, 2);
});

test('disposing closes the created roles, the last one first, and then the connection', async () => {
  const { steps, handle } = rig();
  const created = [handle.plain, handle.store, handle.bus].map(({ name }) => name);
  assert.deepEqual(created, ['plain', 'store', 'bus']);
  steps.length = 0;
  await handle[Symbol.asyncDispose]();
  assert.deepEqual(steps, [
    'close bus',
    'closed bus',
    'close store',
    'closed store',
    'close connection',
    'closed connection',
  ]);
});

test('a handle without a used role closes only the connection', async () => {
  const { steps, handle } = rig();
  await handle[Symbol.asyncDispose]();
  assert.deepEqual(steps, ['close connection', 'closed connection']);
});

test('concurrent and later disposals wait for the first and close nothing again', async () => {
  const { steps, handle } = rig();
  assert.equal(handle.store.name, 'store');
  await Promise.all([handle[Symbol.asyncDispose](), handle[Symbol.asyncDispose]()]);
  const once = [...steps];
  assert.equal(once.at(-1), 'closed connection');
  await handle[Symbol.asyncDispose]();
  assert.deepEqual(steps, once);
});

test('a closed handle creates no role, and returns the roles it has', async () => {
  const { steps, handle } = rig();
  const { store } = handle;
  const closing = handle[Symbol.asyncDispose]();
  const isClosed = (error: unknown): boolean => hasCode(error, 'STORE_CLOSED');
  assert.throws(() => handle.bus, isClosed);
  await closing;
  assert.throws(() => handle.bus, isClosed);
  assert.equal(handle.store, store);
  assert.ok(!steps.includes('create bus'));
});

test('a role that fails to close keeps neither the others nor the connection open', async () => {
  const { steps, handle } = rig(['bus']);
  const names = [handle.store, handle.bus].map(({ name }) => name);
  assert.deepEqual(names, ['store', 'bus']);
  await assert.rejects(async () => handle[Symbol.asyncDispose](), /bus failed/);
  assert.deepEqual(steps.slice(-4), [
    'close store',
    'closed store',
    'close connection',
    'closed connection',
  ]);
});
