import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { slept } from '../foundation/async/slept.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { silentObserver } from '../foundation/observer.ts';
import {
  decideAcquire,
  decideRenew,
  releasedAtMs,
  type LeaseRow,
} from '../subscriptions/rules/decide-lease.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { propertyRuns } from '../testing/property-runs.ts';
import { seededRandom } from '../testing/seeded-random.ts';
import { holdLease, type HeldLease } from './hold-lease.ts';

const ttlMs = 300;
const tickMs = 10;

interface Key {
  readonly name: string;
}
type Lease = HeldLease<Key>;

/** How the lease server treats the following calls. */
interface Faults {
  readonly latencyMsMax: number;
  readonly failuresPercent: number;
  /** Calls without a response. */
  readonly silentPercent: number;
}
const healthy: Faults = { latencyMsMax: 0, failuresPercent: 0, silentPercent: 0 };

type Step =
  | { readonly kind: 'time'; readonly ticks: number }
  | {
      readonly kind: 'disconnect' | 'freeze' | 'kill' | 'start' | 'stop' | 'thaw';
      readonly process: number;
    }
  | { readonly kind: 'faults'; readonly faults: Faults }
  /** The lease server loses the lease, but not the highest token, which the storage of the fence keeps. */
  | { readonly kind: 'amnesia' };

const someFaults = fc.record({
  latencyMsMax: fc.constantFrom(0, ttlMs / 2, 2 * ttlMs),
  failuresPercent: fc.constantFrom(0, 30, 100),
  silentPercent: fc.constantFrom(0, 20, 100),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('time'), ticks: fc.constantFrom(1, 5, 12, 40) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('disconnect', 'freeze', 'kill', 'start', 'stop', 'thaw'),
      process: fc.nat(2),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('faults'), faults: someFaults }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'amnesia' }) },
);
const plan = fc.record({
  steps: fc.array(step, { minLength: 5, maxLength: 40 }),
  seed: fc.nat(),
  /** The clocks of processes differ from the clock of the lease server. */
  offsetsMs: fc.tuple(...[0, 1, 2].map(() => fc.integer({ min: -100_000, max: 100_000 }))),
  faultsAtEnd: someFaults,
});
type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;

interface Process {
  readonly lease: Lease | undefined;
  isFrozen(): boolean;
  /** No later call gets a response, until a thaw. */
  disconnect(): void;
  freeze(): void;
  kill(): void;
  thaw(): void;
  stop(): Promise<void>;
}

async function simulate({ steps, seed, offsetsMs, faultsAtEnd }: Plan): Promise<void> {
  const time = fakeClock();
  const random = seededRandom(seed);
  const failures: string[] = [];
  const released = new Set<number>();
  const processes: (Process | undefined)[] = [];
  let faults = healthy;
  let row: LeaseRow | undefined;
  let highest = 0;
  let forgotAtMs = Number.NEGATIVE_INFINITY;

  const check = (holds: boolean, message: string): void => {
    if (!holds) failures.push(`at ${time.now()}: ${message}`);
  };
  const owners = (): readonly Lease[] =>
    processes.flatMap((each) => (each?.lease?.isValid === true ? [each.lease] : []));
  /** An owner of a forgotten lease cannot know that another process acquired it, but only until it expires. */
  const checkOwners = (): void => {
    const tokens = owners().map(({ fence }) => fence.token);
    const isExclusive = time.now() >= forgotAtMs + ttlMs;
    check(!isExclusive || tokens.length <= 1, `owners with tokens ${tokens.join(', ')}`);
  };

  /** One call: the request travels, the server decides, the response travels; each part may fail. */
  async function call<T>(decide: () => T): Promise<T> {
    const { latencyMsMax, failuresPercent, silentPercent } = faults;
    const pause = (): Promise<void> => time.sleep(random.below(latencyMsMax + 1));
    const outcome = random.below(100);
    const isSilent = random.below(100) < silentPercent;
    if (latencyMsMax > 0) await pause();
    // Half of the failed and silent calls fail before the server decides.
    const isBefore = random.below(2) === 0;
    const result = isBefore && (isSilent || outcome < failuresPercent) ? undefined : decide();
    if (isSilent) await new Promise<never>(() => undefined);
    if (latencyMsMax > 0) await pause();
    if (outcome < failuresPercent || result === undefined) {
      throw new MillraceError('STORE_UNAVAILABLE', 'the lease server failed');
    }
    return result;
  }

  function start(slot: number): void {
    if (processes[slot] !== undefined) return;
    const killed = new AbortController();
    let frozen: PromiseWithResolvers<void> | undefined;
    let isDisconnected = false;
    let lease: Lease | undefined;
    const stopping = new AbortController();
    /** Nothing happens in a frozen or dead process, but its clock goes on. */
    async function resumed<T>(work: Promise<T>): Promise<T> {
      try {
        return await work;
      } finally {
        await frozen?.promise;
        if (killed.signal.aborted) await new Promise<never>(() => undefined);
      }
    }
    const reply = <T>(decide: () => T): Promise<T> =>
      isDisconnected ? new Promise<never>(() => undefined) : resumed(call(decide));
    const clock: Clock = {
      now: () => time.now() + (offsetsMs[slot] ?? 0),
      sleep: (ms, signal = killed.signal) =>
        resumed(time.sleep(ms, AbortSignal.any([signal, killed.signal]))),
    };
    const leases = {
      acquire: (_key: Key, owner: string, ttl: number) =>
        reply(() => {
          const decision = decideAcquire(row, {
            owner,
            nowMs: time.now(),
            ttlMs: ttl,
            above: highest,
          });
          if (decision.kind === 'held') return decision;
          ({ row } = decision);
          highest = row.token;
          return { kind: 'acquired' as const, token: row.token };
        }),
      async renew({ token }: { readonly token: number }, ttl: number) {
        check(!released.has(token), `token ${token} was renewed after its release`);
        const isRenewed = await reply(() => {
          const renewed = decideRenew(row, { token, nowMs: time.now(), ttlMs: ttl });
          row = renewed ?? row;
          return renewed !== undefined;
        });
        if (!isRenewed)
          setImmediate(() =>
            check(
              lease?.fence.token !== token || !lease.isValid,
              `token ${token} is valid after its loss`,
            ),
          );
        return isRenewed;
      },
      release: ({ token }: { readonly token: number }) =>
        reply(() => {
          if (row?.token === token) row = { ...row, expiresAtMs: releasedAtMs };
          return null;
        }).then(() => undefined),
    };

    async function releaseLease(): Promise<void> {
      const last = lease;
      if (last === undefined) return;
      released.add(last.fence.token);
      const done = last.release();
      check(!last.isValid, `token ${last.fence.token} is valid after its release`);
      await done;
      lease = undefined;
    }

    async function run(): Promise<void> {
      while (!stopping.signal.aborted) {
        const lost = new AbortController();
        let waitMs = ttlMs / 3;
        try {
          const acquired = await holdLease<Key>(leases, {
            key: { name: 'leader' },
            owner: `process ${slot}`,
            ttlMs,
            clock,
            observer: silentObserver,
            onLost({ token }) {
              check(!lost.signal.aborted, `token ${token} was lost twice`);
              check(!released.has(token), `token ${token} was lost after its release`);
              lost.abort();
            },
          });
          if (acquired.kind === 'held') waitMs = Math.min(acquired.retryInMs + 1, waitMs);
          else {
            lease = acquired;
            checkOwners();
            waitMs = 1_000_000;
          }
        } catch (error) {
          check(error instanceof MillraceError, String(error));
        }
        const signal = AbortSignal.any([lost.signal, stopping.signal]);
        await slept(clock, waitMs, signal);
        await releaseLease();
      }
    }

    const done = run();
    processes[slot] = {
      get lease() {
        return lease;
      },
      isFrozen: () => frozen !== undefined,
      disconnect() {
        isDisconnected = true;
      },
      kill() {
        killed.abort();
        frozen?.resolve();
      },
      freeze() {
        frozen ??= Promise.withResolvers<void>();
      },
      thaw() {
        isDisconnected = false;
        frozen?.resolve();
        frozen = undefined;
      },
      async stop() {
        stopping.abort();
        await done;
      },
    };
  }

  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += tickMs) {
      await time.advance(tickMs);
      await new Promise(setImmediate);
      checkOwners();
    }
  }

  for (const slot of offsetsMs.keys()) start(slot);
  for (const given of steps) {
    if (given.kind === 'time') await pass(given.ticks * tickMs);
    else if (given.kind === 'faults') ({ faults } = given);
    else if (given.kind === 'amnesia') [row, forgotAtMs] = [undefined, time.now()];
    else if (given.kind === 'start') start(given.process);
    else if (given.kind === 'stop' || given.kind === 'kill') {
      const each = processes[given.process];
      // A frozen process cannot stop.
      if (given.kind === 'stop' && each?.isFrozen() === true) continue;
      void each?.[given.kind]();
      processes[given.process] = undefined;
    } else processes[given.process]?.[given.kind]();
    checkOwners();
  }

  // The faults end, and calls in flight fail or arrive: one process owns the lease.
  faults = healthy;
  for (const each of processes) each?.thaw();
  for (const slot of offsetsMs.keys()) start(slot);
  await pass(6 * ttlMs);
  check(owners().length === 1, 'no process owns the lease although the server is healthy');
  const [owner] = owners();
  await pass(4 * ttlMs);
  check(owners()[0] === owner, 'the owner lost its lease although the server is healthy');
  // It dies, and another one acquires the lease as soon as it expires.
  const slot = processes.findIndex((each) => each?.lease === owner);
  processes[slot]?.kill();
  processes[slot] = undefined;
  await pass(ttlMs + tickMs);
  check(owners().length === 1, 'no process acquired the lease of a dead one');

  // Each process stops, even if the server does not respond.
  faults = faultsAtEnd;
  await pass(ttlMs / 2);
  let stopped = 0;
  const stops = processes.flatMap((each) => (each === undefined ? [] : [each.stop()]));
  for (const each of stops) void each.then(() => (stopped += 1));
  await pass(3 * ttlMs);
  check(stopped === stops.length, `${stopped} of ${stops.length} processes stopped`);
  check(owners().length === 0, 'a stopped process owns the lease');
  await pass(6 * ttlMs);
  check(time.sleepers === 0, `${time.sleepers} timers left`);
  assert.deepEqual(failures, []);
}

test('killed, frozen and slow processes never own a lease together, and its owner is replaced when it dies', async () => {
  await fc.assert(fc.asyncProperty(plan, simulate), { numRuns: propertyRuns(500) });
});

test('a renewal counts from its request, so a slow response does not prolong the lease', async () => {
  const clock = fakeClock({ nowMs: 0 });
  const log: string[] = [];
  const lease = await holdLease<Key>(
    {
      acquire: async () => ({ kind: 'acquired', token: 1 }),
      async renew() {
        log.push(`renewal at ${clock.now()}`);
        if (log.length > 1) throw new Error('no connection');
        await clock.sleep(ttlMs / 2);
        return true;
      },
      release: async () => undefined,
    },
    {
      key: { name: 'leader' },
      owner: 'a',
      ttlMs,
      clock,
      observer: silentObserver,
      onLost: () => log.push(`lost at ${clock.now()}`),
    },
  );
  await clock.advance(3 * ttlMs);
  assert.deepEqual(log, ['renewal at 100', 'renewal at 200', 'renewal at 300', 'lost at 400']);
  assert.ok(lease.kind === 'acquired' && !lease.isValid);
});
