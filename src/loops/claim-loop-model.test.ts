// Several owners of one table of claims, with random kills, freezes, outages and slow items.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { nextTurn } from '../foundation/async/next-turn.ts';
import { fakeClock, type FakeClock } from '../testing/fake-clock.ts';
import { propertyRuns } from '../testing/property-runs.ts';
import { claimLoop, type Cancel, type ClaimLoop } from './claim-loop.ts';

const leaseMs = 6_000;
const drainMs = 2_000;
const concurrency = 3;
const inFlightMax = 8;
const itemBytes = 10;
const bytesMax = 3 * itemBytes;
const callMs = 300;

interface Row {
  readonly id: number;
  readonly durationMs: number;
  token: number;
  leaseUntilMs: number;
  state: 'open' | 'done';
}

interface Item {
  readonly row: Row;
  readonly token: number;
}

/** The shared table: a claim has a lease and a fencing token. */
function createTable(clock: Clock) {
  const rows: Row[] = [];
  let lastToken = 0;
  const isOwner = ({ row, token }: Item): boolean => row.state === 'open' && row.token === token;
  return {
    rows,
    isOwner,
    isOut: false,
    add(durationMs: number): void {
      const free = { token: 0, leaseUntilMs: 0, state: 'open' as const };
      rows.push({ id: rows.length, durationMs, ...free });
    },
    claim(limit: number): readonly Item[] {
      const due = rows.filter((row) => row.state === 'open' && row.leaseUntilMs <= clock.now());
      return due.slice(0, limit).map((row) => {
        lastToken += 1;
        Object.assign(row, { token: lastToken, leaseUntilMs: clock.now() + leaseMs });
        return { row, token: lastToken };
      });
    },
    settle(item: Item, outcome: 'done' | 'released'): void {
      if (!isOwner(item)) return;
      if (outcome === 'done') item.row.state = 'done';
      else Object.assign(item.row, { token: 0, leaseUntilMs: 0 });
    },
    renew(item: Item): boolean {
      if (!isOwner(item)) return false;
      item.row.leaseUntilMs = clock.now() + leaseMs;
      return true;
    },
  };
}

type Table = ReturnType<typeof createTable>;

/** A process: while it is frozen, none of its calls begins, and no result arrives. */
function startOwner(clock: FakeClock, table: Table) {
  const stopping = new AbortController();
  let thaw: PromiseWithResolvers<void> | undefined;
  let isKilled = false;
  let hasClaimed = false;
  const reports: string[] = [];
  /** The loop takes an error of these functions for an outage, so broken rules are collected. */
  const violations: string[] = [];
  const expect = (holds: boolean, rule: string): void => {
    if (!holds) violations.push(rule);
  };
  const endedItems: Item[] = [];
  const settleOrder: number[] = [];
  const runs = new Map<Item, 'running' | 'ended' | 'lost' | 'stopped'>();
  /** Without items whose claim was lost in the turn of the event loop in which they ended. */
  const endOrder = (): readonly number[] =>
    endedItems.filter((item) => runs.get(item) !== 'lost').map(({ token }) => token);

  const runnable = async (): Promise<void> => {
    while (thaw !== undefined) await thaw.promise;
  };
  /** A round trip to the table. */
  const call = async <T>(work: () => T): Promise<T> => {
    await runnable();
    const isOut = table.isOut;
    const result = isOut ? undefined : work();
    await clock.sleep(callMs);
    await runnable();
    if (isOut) throw new MillraceError('STORE_UNAVAILABLE', 'away');
    return result as T;
  };
  const ownClock: Clock = {
    now: () => clock.now(),
    async sleep(ms, signal) {
      await clock.sleep(ms, signal);
      await runnable();
    },
  };

  async function run(item: Item, onCancel: (cancel: Cancel) => void): Promise<'done' | 'released'> {
    expect(table.isOwner(item), 'started without a claim');
    expect(clock.now() < item.row.leaseUntilMs, 'started after the lease');
    expect(!stopping.signal.aborted, 'started after the stop');
    runs.set(item, 'running');
    const running = [...runs.values()].filter((state) => state === 'running').length;
    expect(running <= concurrency, `${running} items are running`);
    const over = new AbortController();
    onCancel((reason) => {
      runs.set(item, reason.code === 'LEASE_LOST' ? 'lost' : 'stopped');
      over.abort();
    });
    const outcome = await ownClock.sleep(item.row.durationMs, over.signal).then(
      () => 'done' as const,
      () => 'released' as const,
    );
    endedItems.push(item);
    if (runs.get(item) === 'running') runs.set(item, 'ended');
    return outcome;
  }

  const loop: ClaimLoop = claimLoop<Item, 'done' | 'released'>(
    {
      clock: ownClock,
      concurrency,
      leaseMs,
      drainMs,
      bytesMax,
      bytesOf: () => itemBytes,
      room: ({ waiting, running, unsettled }) => inFlightMax - waiting - running - unsettled,
      async claim(limit) {
        const { load } = loop;
        const inFlight = load.waiting + load.running + load.unsettled;
        expect(inFlight + limit <= inFlightMax, 'claimed too many items');
        const fits = (load.waiting + limit) * itemBytes <= bytesMax;
        expect(load.waitingBytes === load.waiting * itemBytes, 'miscounted the bytes');
        expect(fits || !hasClaimed, 'claimed too many bytes');
        const leasedAtMs = clock.now();
        const items = await call(() => table.claim(limit));
        hasClaimed ||= items.length > 0;
        return { items, leasedAtMs };
      },
      run,
      release(item) {
        endedItems.push(item);
        return 'released';
      },
      async settle(ended) {
        await call(() => {
          for (const { item, outcome } of ended) {
            expect(runs.get(item) !== 'lost', 'stored the outcome of a lost item');
            settleOrder.push(item.token);
            table.settle(item, outcome);
          }
        });
      },
      renew: (items) => call(() => items.map((item) => table.renew(item))),
      wake: (signal) => ownClock.sleep(500, signal),
      onLost: () => void reports.push('lost'),
      onRestored: () => void reports.push('restored'),
    },
    stopping.signal,
  );

  return {
    loop,
    get isKilled() {
      return isKilled;
    },
    freeze: () => void (thaw ??= Promise.withResolvers<void>()),
    thaw() {
      if (isKilled) return;
      thaw?.resolve();
      thaw = undefined;
    },
    kill() {
      isKilled = true;
      thaw ??= Promise.withResolvers<void>();
    },
    stop: () => stopping.abort(),
    isFrozen: () => thaw !== undefined,
    check(): void {
      assert.deepEqual(violations, []);
      // Every item is settled once, in the order in which the items ended.
      assert.deepEqual(settleOrder, endOrder().slice(0, settleOrder.length));
      assert.equal(new Set(settleOrder).size, settleOrder.length);
      reports.forEach((report, at) => assert.equal(report, at % 2 === 0 ? 'lost' : 'restored'));
    },
    checkStopped(): void {
      assert.deepEqual(violations, []);
      assert.deepEqual(loop.load, { waiting: 0, waitingBytes: 0, running: 0, unsettled: 0 });
      assert.deepEqual(settleOrder, endOrder());
    },
  };
}

/** In small steps: a loop stores outcomes in the turn after they ended. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 100) {
    await clock.advance(100);
    await nextTurn();
    await nextTurn();
  }
}

const owner = fc.nat(1);
const command = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), durationMs: fc.nat(20_000) }),
  fc.record({ kind: fc.constant('add' as const), durationMs: fc.nat(50) }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(5_000) }),
  fc.record({ kind: fc.constantFrom('freeze', 'thaw', 'suspend', 'kill', 'stop'), owner }),
  fc.record({ kind: fc.constantFrom('outage' as const, 'recovery' as const) }),
);

test('every item is done once, whatever happens to its owners, and a stop ends', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 60 }), async (commands) => {
      const clock = fakeClock({ nowMs: 0 });
      const table = createTable(clock);
      const owners = [startOwner(clock, table), startOwner(clock, table)];
      const past: ReturnType<typeof startOwner>[] = [];
      const replace = (at: number): void => {
        const old = owners[at];
        if (old !== undefined) past.push(old);
        owners[at] = startOwner(clock, table);
      };
      for (const each of commands) {
        if (each.kind === 'add' && 'durationMs' in each) table.add(each.durationMs);
        else if (each.kind === 'wait' && 'ms' in each) await clock.advance(each.ms);
        else if (each.kind === 'outage') table.isOut = true;
        else if (each.kind === 'recovery') table.isOut = false;
        else if ('owner' in each) {
          const chosen = owners[each.owner];
          if (each.kind === 'freeze') chosen?.freeze();
          else if (each.kind === 'thaw') chosen?.thaw();
          else if (each.kind === 'suspend') {
            chosen?.freeze();
            await clock.advance(leaseMs + 1);
            chosen?.thaw();
          } else if (each.kind === 'kill') {
            chosen?.kill();
            replace(each.owner);
          } else {
            chosen?.stop();
            replace(each.owner);
            // Longer than the drain and the calls that store the outcomes.
            await pass(clock, drainMs + 5 * callMs);
            if (!table.isOut && chosen?.isFrozen() === false) chosen.checkStopped();
          }
        }
        for (const one of [...owners, ...past]) one.check();
      }
      table.isOut = false;
      for (const one of [...owners, ...past]) one.thaw();
      const isDone = (): boolean => table.rows.every(({ state }) => state === 'done');
      for (let rounds = 0; rounds < 100 && !isDone(); rounds += 1) await clock.advance(5_000);
      assert.ok(isDone(), 'all items are done');
      const live = [...owners, ...past].filter(({ isKilled }) => !isKilled);
      for (const one of live) one.stop();
      await pass(clock, drainMs + leaseMs);
      const stopped = Promise.all(live.map(({ loop }) => loop.done)).then(() => true);
      // A stop that does not end is a failure, not a wait.
      assert.ok(await Promise.race([stopped, nextTurn().then(() => false)]), 'a stop did not end');
      for (const one of owners) one.checkStopped();
      for (const one of live) one.check();
    }),
    { numRuns: propertyRuns(500) },
  );
});
