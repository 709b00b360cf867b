// Keeps streams as long as their domain says, a stream at a time; what is to be archived is first.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { archiveStream } from './archive.ts';
import { drainToArchive } from './archiver-group.ts';
import type { Bus, Trimmed } from './bus.ts';
import type { ColdStorage } from './cold-storage.ts';
import { busLimits } from './bus-limits.ts';
import { retentionDefaults, retentionOf, type RetentionRule } from './retention.ts';

export interface SweepOptions {
  /** Default: `retentionDefaults()`. */
  readonly rules?: readonly RetentionRule[] | undefined;
  /** Where archived streams go. Absent: they are not trimmed. */
  readonly archive?: ColdStorage | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What is not old yet is left for another sweep. Default: the groups of archivers are drained, too. */
  readonly skipsArchivers?: boolean | undefined;
}

export interface Swept {
  readonly removed: number;
  readonly archived: number;
  /** Old enough to go, and not acked by a group. */
  readonly heldBack: number;
  /** Streams whose turn failed; the log has why. */
  readonly failed: number;
}

/**
 * Sweeps all streams once. One that fails does not keep the others.
 *
 * @example
 * import { fileColdStorage, sweepBus, type Bus } from 'millrace/bus';
 *
 * const sweep = (bus: Bus) => sweepBus(bus, { archive: fileColdStorage('.millrace/archive') });
 */
export async function sweepBus(bus: Bus, options: SweepOptions = {}): Promise<Swept> {
  const { rules = retentionDefaults(), observer = silentObserver, signal } = options;
  const total = { removed: 0, archived: 0, heldBack: 0, failed: 0 };
  const patterns = ['>', ...new Set(rules.map(({ pattern }) => pattern).filter(isOfTheSystem))];
  total.archived += await drainArchivers(bus, rules, options);
  for (const pattern of patterns) {
    for await (const subject of subjectsOf(bus, pattern)) {
      const rule = retentionOf(rules, subject);
      if (rule === undefined || signal?.aborted === true) continue;
      try {
        const { removed, heldBack, archived } = await sweepStream(bus, subject, rule, options);
        total.removed += removed;
        total.heldBack += heldBack;
        total.archived += archived;
      } catch (err) {
        if (hasCode(err, 'ABORTED')) break;
        total.failed += 1;
        observer.log?.warn({ subject, err }, 'stream could not be swept');
      }
    }
  }
  const { removed, archived, heldBack } = total;
  if (removed > 0) observer.count?.('bus_swept_total', {}, removed);
  if (archived > 0) observer.count?.('bus_archived_total', {}, archived);
  observer.gauge?.('bus_held_back', heldBack, {});
  return total;
}

/** One that fails does not keep the others, and nothing of it is trimmed: its group holds it. */
async function drainArchivers(
  bus: Bus,
  rules: readonly RetentionRule[],
  options: SweepOptions,
): Promise<number> {
  const { archive, clock = systemClock, observer = silentObserver, signal } = options;
  if (archive === undefined || options.skipsArchivers === true) return 0;
  let archived = 0;
  for (const { pattern, archiver, isArchived } of rules) {
    if (archiver === undefined || isArchived !== true || signal?.aborted === true) continue;
    try {
      const group = { group: archiver, subject: pattern };
      archived += await drainToArchive(bus, archive, group, {
        before: new Date(clock.now()),
        signal,
      });
    } catch (err) {
      if (hasCode(err, 'ABORTED')) break;
      observer.log?.warn({ group: archiver, err }, 'streams could not be drained to the archive');
    }
  }
  return archived;
}

const isOfTheSystem = (pattern: string): boolean => pattern.startsWith('_');

async function* subjectsOf(bus: Bus, pattern: string): AsyncGenerator<string> {
  const limit = busLimits.pageDefault;
  for (let after: string | undefined; ;) {
    const page = await bus.streams(pattern, { after, limit });
    yield* page.map(({ subject }) => subject);
    after = page.at(-1)?.subject;
    if (page.length < limit) return;
  }
}

async function sweepStream(
  bus: Bus,
  subject: string,
  rule: RetentionRule,
  { archive, clock = systemClock, signal }: SweepOptions,
): Promise<Trimmed & { readonly archived: number }> {
  const { ageMs, lengthMax, bytesMax, isArchived = false } = rule;
  const storedBefore = ageMs === undefined ? undefined : new Date(clock.now() - ageMs);
  if (isArchived) {
    // Length and bytes would cut what is not archived yet: archived streams go by age alone.
    if (archive === undefined || storedBefore === undefined) return nothing;
    return archiveStream(bus, archive, subject, { before: storedBefore, signal });
  }
  const order = {
    storedBefore,
    lengthMax,
    bytesMax: bus.capabilities.streamBytes ? bytesMax : undefined,
  };
  if (Object.values(order).every((each) => each === undefined)) return nothing;
  return { archived: 0, ...(await bus.trim(subject, order)) };
}

const nothing = { removed: 0, heldBack: 0, archived: 0 };

export interface BusSweeperOptions extends Omit<SweepOptions, 'signal' | 'skipsArchivers'> {
  /** Default: a minute. */
  readonly everyMs?: number | undefined;
  /** From one drain of the archivers to the next: a segment of each stream each time. Default: a day. */
  readonly archiveEveryMs?: number | undefined;
}

/**
 * Sweeps again and again, until it is disposed. Several processes may: each stream is trimmed once.
 *
 * @example
 * import { startBusSweeper, type Bus } from 'millrace/bus';
 *
 * const keepTidy = (bus: Bus): AsyncDisposable => startBusSweeper(bus, { everyMs: 300_000 });
 */
export function startBusSweeper(bus: Bus, options: BusSweeperOptions = {}): AsyncDisposable {
  const { everyMs = 60_000, archiveEveryMs = 86_400_000 } = options;
  const { clock = systemClock, observer = silentObserver } = options;
  const stopping = new AbortController();
  const { signal } = stopping;

  async function run(): Promise<void> {
    let drainedAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      try {
        const skipsArchivers = clock.now() - drainedAtMs < archiveEveryMs;
        if (!skipsArchivers) drainedAtMs = clock.now();
        await sweepBus(bus, { ...options, signal, skipsArchivers });
        await clock.sleep(everyMs, signal);
      } catch (err) {
        if (signal.aborted) return;
        observer.log?.warn({ err }, 'the bus could not be swept');
        await clock.sleep(everyMs, signal).catch(() => undefined);
      }
    }
  }

  const done = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await done;
    },
  };
}
