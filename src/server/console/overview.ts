// The numbers of the overview: one sampler for all open consoles, which runs only while a console watches.

import { positionDistance, type Position } from '../../store/position.ts';
import type { FailingShard } from '../../subscriptions/run/failing-shards.ts';
import {
  subscriptionOverview,
  type SubscriptionLag,
} from '../../subscriptions/subscription-admin.ts';
import { storageOf } from '../../subscriptions/with-leases.ts';
import type { Observer } from '../../foundation/observer.ts';
import { sweepLoop } from '../../loops/sweep-loop.ts';
import type { FailureSource } from '../../platform/failures/failure-sources.ts';
import { countFailures } from '../../platform/failures/failures.ts';
import type { ApiPlatform } from '../api/api-context.ts';

const overviewLimits = {
  sampleEveryMs: 2_000,
  /** A request within this time gets the last sample. */
  freshMs: 1_000,
  historyMs: 900_000,
  /** The points that are read from the store when no console has watched before. */
  backfillPoints: 30,
} as const;

export interface Sample {
  readonly atMs: number;
  readonly head: Position;
  /** Absent in samples of the time before the first console watched. */
  readonly lagSeconds?: number;
  readonly failures?: number;
  readonly outbox?: number;
  readonly jobs?: number;
}

export interface OverviewPoint extends Omit<Sample, 'atMs' | 'head'> {
  readonly at: string;
  readonly eventsPerSecond?: number;
}

interface Facts {
  readonly at: string;
  readonly head: Position;
  readonly subscriptions: readonly (SubscriptionLag &
    Awaited<ReturnType<typeof subscriptionOverview>>[number])[];
  readonly outbox: Awaited<ReturnType<typeof readOutbox>>;
  readonly jobs: Awaited<ReturnType<typeof readJobs>>;
  readonly failures: Readonly<Record<FailureSource, number>>;
  readonly failing: readonly Pick<FailingShard, 'subscription' | 'failures' | 'reason'>[];
}

export interface OverviewReader extends AsyncDisposable {
  read(): Promise<Facts & { readonly series: readonly OverviewPoint[] }>;
  /** Calls the listener after each new sample, until the result is disposed. */
  watch(listener: () => void): Disposable;
}

export function createOverview(
  platform: ApiPlatform,
  { observer }: { readonly observer: Observer },
): OverviewReader {
  const { clock, engines } = platform;
  const { store } = engines;
  const countsEvents = (store.capabilities.positionUnit ?? 'events') === 'events';
  const listeners = new Set<() => void>();
  let samples: readonly Sample[] = [];
  let last: { readonly atMs: number; readonly facts: Promise<Facts> } | undefined;
  let loop: AsyncDisposable | undefined;

  async function take(): Promise<Facts> {
    const atMs = clock.now();
    if (samples.length === 0 && countsEvents) samples = await backfill(atMs);
    const facts = await readFacts(platform);
    const { outbox, jobs, subscriptions } = facts;
    const newest: Sample = {
      atMs,
      head: facts.head,
      lagSeconds: Math.max(0, ...subscriptions.map(({ seconds }) => seconds)),
      failures: Object.values(facts.failures).reduce((sum, count) => sum + count, 0),
      ...(outbox === undefined
        ? {}
        : { outbox: outbox.counts.PENDING + outbox.counts.CLAIMED + outbox.counts.FAILED }),
      ...(jobs === undefined ? {} : { jobs: jobs.waiting + jobs.running }),
    };
    samples = [...samples.filter((each) => each.atMs > atMs - overviewLimits.historyMs), newest];
    return facts;
  }

  /** The store knows how many events it had at any time. */
  async function backfill(nowMs: number): Promise<readonly Sample[]> {
    const { backfillPoints, historyMs } = overviewLimits;
    const found: Sample[] = [];
    for (let at = backfillPoints; at > 0; at -= 1) {
      const atMs = nowMs - (historyMs * at) / backfillPoints;
      found.push({ atMs, head: await store.positionBefore(atMs) });
    }
    return found;
  }

  function sample(): Promise<Facts> {
    const nowMs = clock.now();
    if (last !== undefined && nowMs - last.atMs < overviewLimits.freshMs) return last.facts;
    const facts = take();
    last = { atMs: nowMs, facts };
    facts.catch(() => (last = undefined));
    return facts;
  }

  return {
    async read() {
      const facts = await sample();
      return { ...facts, series: seriesOf(samples, countsEvents) };
    },
    watch(listener) {
      listeners.add(listener);
      loop ??= sweepLoop(
        async () => {
          await sample();
          for (const each of listeners) each();
        },
        {
          everyMs: overviewLimits.sampleEveryMs,
          clock,
          onFailure: (error) => observer.log?.warn({ err: error }, 'overview sample failed'),
        },
      );
      return {
        [Symbol.dispose]() {
          listeners.delete(listener);
          if (listeners.size > 0) return;
          const ending = loop;
          loop = undefined;
          void ending?.[Symbol.asyncDispose]();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      listeners.clear();
      await loop?.[Symbol.asyncDispose]();
    },
  };
}

/** Pure: rates between samples, and the other numbers as they were. */
export function seriesOf(
  samples: readonly Sample[],
  countsEvents: boolean,
): readonly OverviewPoint[] {
  return samples.slice(1).map(({ atMs, head, ...numbers }, index) => {
    const before = samples[index];
    const seconds = (atMs - (before?.atMs ?? atMs)) / 1_000;
    const count = before === undefined ? 0 : positionDistance(before.head, head);
    return {
      at: new Date(atMs).toISOString(),
      ...(countsEvents ? { eventsPerSecond: seconds <= 0 ? 0 : count / seconds } : {}),
      ...numbers,
    };
  });
}

async function readFacts(platform: ApiPlatform): Promise<Facts> {
  const { engines, subscriptions: admin } = platform;
  const [head, all, outbox, jobs, failureCounts] = await Promise.all([
    engines.store.head(),
    subscriptionOverview(admin, storageOf(engines)),
    readOutbox(platform),
    readJobs(platform),
    countFailures(platform),
  ]);
  const subscriptions = await Promise.all(
    all.map(async (each) => ({ ...each, ...(await admin.lag(each.subscription)) })),
  );
  const failing = platform.failingShards().map(({ subscription, failures, reason }) => ({
    subscription,
    failures,
    reason,
  }));
  return {
    at: new Date(platform.clock.now()).toISOString(),
    head,
    subscriptions,
    outbox,
    jobs,
    failures: failureCounts,
    failing,
  };
}

async function readOutbox({ engines: { outbox } }: ApiPlatform) {
  if (outbox === undefined) return undefined;
  const [counts, paused] = await Promise.all([outbox.counts(), outbox.paused()]);
  return { counts, paused: paused.map(({ integrationType }) => integrationType) };
}

async function readJobs({ engines, tasks }: ApiPlatform) {
  if (!engines.has('tasks')) return undefined;
  const sum = { waiting: 0, running: 0, failed: 0, done: 0 };
  for (const { states } of await (await tasks()).counts()) {
    sum.waiting += states.scheduled + states.queued + states.waiting;
    sum.running += states.running;
    sum.failed += states.failed;
    sum.done += states.completed + states.cancelled;
  }
  return sum;
}
