// Starts and stops in any order: the server, the store of the adapter, and tokens leave nothing open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { createLifecycle } from '../../src/foundation/lifecycle.ts';
import { openTokens } from '../../src/platform/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { stressLifecycle } from '../../src/testing/index.ts';
import { soakMinutes } from '../store/rig.ts';
import { serveSqlite } from './served-sqlite.ts';

/** A quarter of the rounds of the soak. */
const rounds = soakMinutes > 0 ? 200 : 50;

/** Keeps the result of `open` from start to stop. */
function holding(open: (signal: AbortSignal) => Promise<AsyncDisposable>) {
  let resource: AsyncDisposable | undefined;
  return createLifecycle({
    async start(signal) {
      resource = await open(signal);
    },
    async stop() {
      const last = resource;
      resource = undefined;
      await last?.[Symbol.asyncDispose]();
    },
  });
}

const openNow = (kind: string): number =>
  process.getActiveResourcesInfo().filter((name) => name === kind).length;

/** Waits until the count is reached, because sockets close asynchronously. */
async function atMost(kind: string, count: number): Promise<void> {
  for (let turn = 0; openNow(kind) > count; turn += 1) {
    assert.ok(turn < 6_000, `${openNow(kind)} of ${kind} are open, not ${count}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('a server that is started and stopped in any order leaves no port open', async () => {
  await using db = openMemory(kurrentStoreOptions);
  const { leases } = db.subscriptions;
  const before = openNow('TCPServerWrap');
  await stressLifecycle({
    create: () => holding((signal) => startKurrentServer(db.store, { leases, port: 0, signal })),
    assertReleased: () => atMost('TCPServerWrap', before),
    rounds,
  });
  await db.store.head();
});

// In another process, whose sockets do not count: the native bridge of the official client never closes its connection.
test("the adapter's store that is opened and closed in any order leaves no connection open", async () => {
  await using served = await serveSqlite();
  const before = openNow('TCPSocketWrap');
  await stressLifecycle({
    create: () => holding(() => openKurrent(served.url)),
    assertReleased: () => atMost('TCPSocketWrap', before),
    rounds: rounds / 2,
  });
});

test('tokens that are opened and closed in any order leave no pending waits', async () => {
  await using db = openMemory(kurrentStoreOptions);
  const before = openNow('Timeout');
  await stressLifecycle({
    create: () => holding(() => openTokens(db.store)),
    assertReleased: () => atMost('Timeout', before),
    rounds,
  });
});
