// Applies the retention rules, one stream at a time, and archives before it trims.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { sweepLoop } from '../loops/sweep-loop.ts';
import { archiveStream, copyToArchive, type ArchiveStreamOptions } from './archive.ts';
import type { Bus, GroupDefinition, Trimmed } from './bus.ts';
import type { ColdStorage } from './cold-storage.ts';
import { busLimits as limits } from './bus-limits.ts';
import { retentionDefaults, retentionOf, type RetentionRule } from './retention.ts';
import { compareSequences } from './sequence.ts';

export interface SweepOptions {
  /** Default: `retentionDefaults()`. */
  readonly rules?: readonly RetentionRule[] | undefined;
  /** The storage for archived streams. Without it, streams with `isArchived` are not trimmed. */
  readonly archive?: ColdStorage | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Skips the archiver groups, which copy messages that are not old yet. Default: false. */
  readonly skipsArchivers?: boolean | undefined;
}

export interface Swept {
  readonly removed: number;
  readonly archived: number;
  /** Messages that are old enough to remove, but not acked by a group. */
  readonly heldBack: number;
  /** Streams whose sweep failed; the log has the reason. */
  readonly failed: number;
}

/**
 * Sweeps all streams once. A failure of one stream does not affect the others.
 *
 * @example
 * import { fileColdStorage, sweepBus, type Bus } from 'millrace/bus';
 *
 * const sweep = (bus: Bus) => sweepBus(bus, { archive: fileColdStorage('.millrace/archive') });
 */
export async function sweepBus(bus: Bus, options: SweepOptions = {}): Promise<Swept> {
  const { rules = retentionDefaults(), observer = silentObserver, signal } = options;
  const total = { removed: 0, archived: 0, heldBack: 0, failed: 0 };
  const patterns = ['>', ...new Set(rules.map(({ pattern }) => pattern).filter(isSystemPattern))];
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
        observer.log?.warn({ subject, err }, 'stream sweep failed');
      }
    }
  }
  const { removed, archived, heldBack } = total;
  if (removed > 0) observer.count?.('bus_swept_total', {}, removed);
  if (archived > 0) observer.count?.('bus_archived_total', {}, archived);
  observer.gauge?.('bus_held_back', heldBack, {});
  return total;
}

/** After a failure, nothing of the failed streams is trimmed, because the group has not acked it. */
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
      observer.log?.warn({ group: archiver, err }, 'archiver group failed');
    }
  }
  return archived;
}

/** Messages that arrive during a run are left to a later run. */
const nextRunMs = 60_000;

/**
 * Copies all streams of the pattern to cold storage, then acks the copied messages. After a crash the next run finds
 * the copies and acks. Resolves with the number of copied messages.
 */
async function drainToArchive(
  bus: Bus,
  storage: ColdStorage,
  definition: Pick<GroupDefinition, 'group' | 'subject'>,
  options: ArchiveStreamOptions,
): Promise<number> {
  const group = await bus.group({ ...definition, maxDeliveries: limits.maxDeliveriesMax });
  const upTo = new Map<string, string>();
  let archived = 0;
  for await (const subject of subjectsOf(bus, definition.subject)) {
    const copied = await copyToArchive(bus, storage, subject, options);
    archived += copied.archived;
    if (copied.upTo !== undefined) upTo.set(subject, copied.upTo.lastSequence);
  }
  const { signal } = options;
  for (;;) {
    const deliveries = await group.fetch({ limit: limits.fetchMax, waitMs: 0, signal });
    if (deliveries.length === 0) return archived;
    const isArchived = ({ subject, sequence }: (typeof deliveries)[number]): boolean =>
      compareSequences(sequence, upTo.get(subject) ?? '0') <= 0;
    await group.ack(deliveries.filter(isArchived));
    const younger = deliveries.filter((each) => !isArchived(each));
    const reason = 'not archived yet';
    await Promise.all(younger.map((each) => each.nack({ delayMs: nextRunMs, reason })));
  }
}

const isSystemPattern = (pattern: string): boolean => pattern.startsWith('_');

async function* subjectsOf(bus: Bus, pattern: string): AsyncGenerator<string> {
  const limit = limits.pageDefault;
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
    // Limits of length and bytes could remove messages that are not archived yet, so only the age counts.
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
  /** The interval between runs of the archiver groups; each run writes a segment per stream. Default: a day. */
  readonly archiveEveryMs?: number | undefined;
}

/**
 * Sweeps periodically until it is disposed. Several processes may run it at the same time.
 *
 * @example
 * import { startBusSweeper, type Bus } from 'millrace/bus';
 *
 * const keepTidy = (bus: Bus): AsyncDisposable => startBusSweeper(bus, { everyMs: 300_000 });
 */
export function startBusSweeper(bus: Bus, options: BusSweeperOptions = {}): AsyncDisposable {
  const { everyMs = 60_000, archiveEveryMs = 86_400_000 } = options;
  const { clock = systemClock, observer = silentObserver } = options;
  let drainedAtMs = Number.NEGATIVE_INFINITY;
  return sweepLoop(
    async (signal) => {
      const skipsArchivers = clock.now() - drainedAtMs < archiveEveryMs;
      if (!skipsArchivers) drainedAtMs = clock.now();
      await sweepBus(bus, { ...options, signal, skipsArchivers });
    },
    { everyMs, clock, onFailure: (err) => observer.log?.warn({ err }, 'bus sweep failed') },
  );
}
