// Everything that failed and waits for a decision, grouped by cause.

import { nextTurn } from '../../foundation/async/next-turn.ts';
import { unlessAborted } from '../../foundation/async/when-aborted.ts';
import { aborted } from '../../foundation/clock.ts';
import { failureTitle } from '../../foundation/failure-cause.ts';
import type { FailureDecision, FailureState } from './failure-decisions.ts';
import {
  failureKinds,
  failureSources,
  type Failure,
  type FailurePlatform,
  type FailureSource,
} from './failure-sources.ts';

export const failureLimits = {
  /** Failures that are read per source; more are reported as not counted. */
  lookedMax: 10_000,
  /** The characters of errors and stacks that are kept per read. */
  textCharsMax: 1_048_576,
  itemsMax: 200,
  buckets: 24,
} as const;

/** All given fields must match. */
export interface FailureFilter {
  readonly source?: FailureSource | undefined;
  /** The subscription, destination, task type, group or saga. */
  readonly where?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly fingerprints?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  /** The type of the event, message or job. */
  readonly type?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  /** Failed at this time or earlier, ISO 8601. */
  readonly until?: string | undefined;
}

export interface FailureGroup {
  readonly fingerprint: string;
  readonly source: FailureSource;
  readonly where: string;
  readonly title: string;
  /** Name or code of the error. */
  readonly name: string | undefined;
  readonly count: number;
  /** How many of them are not tried again by themselves. */
  readonly final: number;
  readonly parked: number;
  readonly tenants: readonly string[];
  readonly first: string;
  readonly last: string;
  /** Failures by time, from `first` of all groups to now. */
  readonly buckets: readonly number[];
  /** `resolved` and `ignored` hold until the cause happens again; then the group is open again. */
  readonly state: FailureState;
  /** The last decision about the group, also after the cause has happened again. */
  readonly decision: FailureDecision | undefined;
}

export interface Failures {
  readonly items: readonly Failure[];
  /** False: there are more failures than were read. */
  readonly isComplete: boolean;
}

/** The read that runs, and the reads that wait for it, by their filters. */
interface Reads {
  running: Promise<unknown>;
  readonly waiting: Map<string, SharedRead>;
}

interface SharedRead {
  readonly found: Promise<Failures>;
  readonly stop: AbortController;
  callers: number;
}

const readsOf = new WeakMap<object, Reads>();

/**
 * One read at a time for each platform. Callers with the same filter share a read that has not started yet, so each
 * caller gets what was stored before its call. A read stops when all of its callers have left.
 */
export async function readFailures(
  platform: FailurePlatform,
  filter: FailureFilter,
  signal?: AbortSignal,
): Promise<Failures> {
  const reads = readsOf.getOrInsertComputed(platform.engines, () => ({
    running: Promise.resolve(),
    waiting: new Map(),
  }));
  const key = JSON.stringify(filter);
  const read = reads.waiting.getOrInsertComputed(key, () => {
    const stop = new AbortController();
    const found = reads.running.then(() => {
      if (!stop.signal.aborted) reads.waiting.delete(key);
      return readAll(platform, filter, stop.signal);
    });
    // The callers get the error; the next read starts in any case.
    reads.running = found.catch(() => undefined);
    return { found, stop, callers: 0 };
  });
  read.callers += 1;
  try {
    return await unlessAborted(read.found, signal);
  } finally {
    read.callers -= 1;
    if (read.callers === 0) {
      read.stop.abort();
      // A later caller must not get a read that has stopped before its start.
      if (reads.waiting.get(key) === read) reads.waiting.delete(key);
    }
  }
}

/** The sources are read one after the other: the pages of one source are in memory. */
async function readAll(
  platform: FailurePlatform,
  filter: FailureFilter,
  signal: AbortSignal,
): Promise<Failures> {
  if (signal.aborted) throw aborted(signal);
  const items = collectFailures();
  let isComplete = true;
  for (const source of filter.source === undefined ? failureSources : [filter.source]) {
    let looked = 0;
    for await (const page of failureKinds[source].read(platform, filter)) {
      // SQLite reads without waiting: other requests are answered between two pages.
      await nextTurn();
      if (signal.aborted) throw aborted(signal);
      for (const each of page) if (matches(each, filter)) items.add(each);
      looked += page.length;
      if (looked < failureLimits.lookedMax) continue;
      isComplete = false;
      break;
    }
  }
  return { items: items.all, isComplete };
}

/** Keeps the whole errors and stacks of the latest failures; of earlier failures the titles, of which few differ. */
function collectFailures(): { readonly all: readonly Failure[]; add(failure: Failure): void } {
  const all: Failure[] = [];
  const titles = new Map<string, string>();
  let firstWhole = 0;
  let chars = 0;
  const charsOf = ({ error, cause }: Failure): number => error.length + (cause.stack?.length ?? 0);
  return {
    all,
    add(failure) {
      all.push(failure);
      chars += charsOf(failure);
      for (; chars > failureLimits.textCharsMax; firstWhole += 1) {
        const earliest = all[firstWhole];
        if (earliest === undefined) return;
        chars -= charsOf(earliest);
        const { fingerprint, name, code } = earliest.cause;
        const title = failureTitle(earliest.error);
        // A slice of a string keeps the whole string in memory.
        const error = titles.getOrInsertComputed(title, () => structuredClone(title));
        all[firstWhole] = { ...earliest, error, cause: { fingerprint, name, code } };
      }
    },
  };
}

/** The number of failures of each kind, of all tenants: what `readFailures` finds without a filter. */
export async function countFailures(
  platform: FailurePlatform,
): Promise<Readonly<Record<FailureSource, number>>> {
  const counts: Partial<Record<FailureSource, number>> = {};
  for (const source of failureSources) {
    const kind = failureKinds[source];
    let counted = (await kind.count?.(platform)) ?? 0;
    if (kind.count === undefined) {
      for await (const page of kind.read(platform, {})) {
        counted += page.length;
        if (counted >= failureLimits.lookedMax) break;
      }
    }
    counts[source] = counted;
  }
  return counts as Record<FailureSource, number>;
}

export function matches(failure: Failure, filter: FailureFilter): boolean {
  const { source, where, fingerprint, fingerprints, tenant, type, ids, until } = filter;
  return (
    (source === undefined || failure.source === source) &&
    (where === undefined || failure.where === where) &&
    (fingerprint === undefined || failure.cause.fingerprint === fingerprint) &&
    (fingerprints === undefined || fingerprints.includes(failure.cause.fingerprint)) &&
    (tenant === undefined || failure.tenant === tenant) &&
    (type === undefined || failure.type === type) &&
    (ids === undefined || ids.includes(failure.id)) &&
    (until === undefined || failure.at <= until)
  );
}

/** Groups with the latest failure first. */
export function groupFailures(
  failures: readonly Failure[],
  nowMs: number,
  decisions: ReadonlyMap<string, FailureDecision> = new Map(),
): readonly FailureGroup[] {
  const groups = Map.groupBy(failures, ({ cause }) => cause.fingerprint);
  const fromMs = failures.reduce((ms, { at }) => Math.min(ms, Date.parse(at)), nowMs - 60_000);
  const found = [...groups].flatMap(([fingerprint, all]): readonly FailureGroup[] => {
    const times = all.map(({ at }) => at).toSorted();
    const [sample] = all;
    const [first] = times;
    const last = times.at(-1);
    if (sample === undefined || first === undefined || last === undefined) return [];
    const decision = decisions.get(fingerprint);
    const holds = decision !== undefined && last <= decision.at;
    const buckets = Array.from({ length: failureLimits.buckets }, () => 0);
    for (const time of times) {
      const share = (Date.parse(time) - fromMs) / Math.max(1, nowMs - fromMs);
      const at = Math.min(buckets.length - 1, Math.max(0, Math.floor(share * buckets.length)));
      buckets[at] = (buckets[at] ?? 0) + 1;
    }
    return [
      {
        fingerprint,
        source: sample.source,
        where: sample.where,
        title: failureTitle(sample.error),
        name: sample.cause.name ?? sample.cause.code,
        count: all.length,
        final: all.filter(({ isFinal }) => isFinal).length,
        parked: all.filter(({ isParked }) => isParked).length,
        tenants: [...new Set(all.flatMap((each) => each.tenant ?? []))].toSorted().slice(0, 20),
        first,
        last,
        buckets,
        state: holds ? decision.state : 'open',
        decision,
      },
    ];
  });
  return found.toSorted((a, b) => (a.last > b.last ? -1 : 1));
}
