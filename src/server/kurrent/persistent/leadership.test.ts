import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentObserver } from '../../../foundation/observer.ts';
import { memorySubscriptionStorage } from '../../../testing/support/subscriptions/memory/storage.ts';
import type { LeaseStore } from '../../../subscriptions/subscription-storage.ts';
import { fakeClock, type FakeClock } from '../../../testing/fake-clock.ts';
import { createLeadership, soleLeadership, type Leadership } from './leadership.ts';

const ttlMs = 6_000;

function rig() {
  const clock = fakeClock();
  const { leases } = memorySubscriptionStorage({ clock });
  const log: string[] = [];
  const server = (port: number, parts: { leases?: LeaseStore; fails?: () => boolean } = {}) =>
    createLeadership({
      leases: parts.leases ?? leases,
      address: () => ({ host: 'h', port }),
      ttlMs,
      clock,
      observer: silentObserver,
      onElected: async () => {
        if (parts.fails?.() === true) throw new Error('cannot load');
        log.push(`${port} leads`);
      },
      onLost: async () => {
        log.push(`${port} lost`);
      },
    });
  return { clock, leases, log, server };
}

const leaderOf = ({ members }: Leadership): number | undefined =>
  members.find(({ isLeader }) => isLeader)?.address.port;

/** Long enough for every server to run an election step. */
async function lookAround(clock: FakeClock, ms = ttlMs): Promise<void> {
  for (let passed = 0; passed < ms; passed += ttlMs / 6) {
    // Let running steps reach their next wait first.
    await new Promise(setImmediate);
    await clock.advance(ttlMs / 6);
  }
  await new Promise(setImmediate);
}

test('the first server leads, and the others know its address', async () => {
  const { clock, log, server } = rig();
  await using first = server(1);
  await using second = server(2);
  await first.join();
  await second.join();
  assert.deepEqual([first.leads, second.leads], [true, false]);
  assert.equal(leaderOf(second), 1);
  await lookAround(clock, ttlMs * 5);
  assert.deepEqual([first.leads, second.leads], [true, false]);
  assert.deepEqual(
    first.members.map(({ address }) => address.port).toSorted((a, b) => a - b),
    [1, 2],
  );
  assert.deepEqual(log, ['1 leads']);
});

test('a leader that stops hands over immediately', async () => {
  const { clock, log, server } = rig();
  const first = server(1);
  await using second = server(2);
  await first.join();
  await second.join();
  await first[Symbol.asyncDispose]();
  await lookAround(clock, ttlMs / 2);
  assert.equal(second.leads, true);
  assert.deepEqual(log, ['1 leads', '1 lost', '2 leads']);
});

test('a leader without access to the leases steps down, and another server leads', async () => {
  const { clock, leases, log, server } = rig();
  let isAway = false;
  const flaky: LeaseStore = {
    ...leases,
    renew: (...args) => (isAway ? new Promise(() => undefined) : leases.renew(...args)),
    acquire: (...args) => (isAway ? new Promise(() => undefined) : leases.acquire(...args)),
    release: async (...args) => (isAway ? undefined : leases.release(...args)),
    leave: async (...args) => (isAway ? undefined : leases.leave(...args)),
  };
  const first = server(1, { leases: flaky });
  await using second = server(2);
  await first.join();
  await second.join();
  isAway = true;
  await lookAround(clock, ttlMs * 2);
  assert.deepEqual([first.leads, second.leads], [false, true]);
  assert.deepEqual(log, ['1 leads', '1 lost', '2 leads']);
});

test('a server that resigned joins the next election and loads the groups again', async () => {
  const { clock, log, server } = rig();
  await using only = server(1);
  await only.join();
  only.resign();
  assert.equal(only.leads, false);
  await lookAround(clock);
  assert.equal(only.leads, true);
  assert.deepEqual(log, ['1 leads', '1 lost', '1 leads']);
});

test('a server that fails to load the groups does not lead and releases the lease', async () => {
  const { log, server } = rig();
  let fails = true;
  await using first = server(1, { fails: () => fails });
  await using second = server(2);
  await assert.rejects(first.join(), /cannot load/);
  await second.join();
  assert.equal(second.leads, true);
  fails = false;
  await first.join();
  assert.equal(first.leads, false);
  assert.deepEqual(log, ['1 lost', '2 leads']);
});

test('without leases the only server leads', async () => {
  let calls = 0;
  await using sole = soleLeadership(async () => {
    calls += 1;
    if (calls === 1) throw new Error('cannot load');
  });
  await assert.rejects(sole.join(), /cannot load/);
  await sole.join();
  assert.equal(sole.leads, true);
});
