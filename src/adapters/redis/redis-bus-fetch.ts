// Hands out messages. A member does not poll its streams one by one: wake-ups name those that have
// something, each visit tells what is left and when the next lease is over, and a bounded look at all of
// them finds what no wake-up told.

import type { FetchRequest, GroupSettings, LeasedEntry } from '../../bus/bus-engine.ts';
import { unknownGroup } from '../../bus/group-errors.ts';
import { aborted } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import { textOf } from './redis-bus-calls.ts';
import type { RedisBusContext } from './redis-bus-context.ts';
import { storedEntry } from './redis-bus-entry.ts';
import { fullSubjects, takes, type BusGroups, type GroupRecord } from './redis-bus-groups.ts';
import { busScripts } from './redis-bus-scripts.ts';
import { tokenText } from './redis-bus-settle.ts';
import {
  createGroupView,
  domainView,
  dueAtMsOf,
  pendingOf,
  tellNews,
  type GroupView,
} from './redis-bus-view.ts';
import type { Wake } from './redis-bus-wake.ts';

/** Between two looks at all streams, and what each domain adds, so that many do not cost more. */
const sweepMs = { every: 1_000, perDomain: 4 } as const;
/** Streams in one script, scripts at once, and what each of those is first asked for. */
const visitMax = { streams: 250, atOnce: 32, share: 16 } as const;
const dueMsMin = 5;

interface VisitLimits {
  readonly limit: number;
  readonly room: number;
  readonly isSweep: boolean;
}

interface Visit {
  readonly domain: string;
  readonly streams: readonly string[];
}

export interface BusFetch {
  readonly fetch: (
    settings: GroupSettings,
    request: FetchRequest,
  ) => Promise<readonly LeasedEntry[]>;
  /** The group was made, or is another one now. */
  readonly know: (settings: GroupSettings, record: GroupRecord) => void;
  readonly hear: (wake: Wake) => void;
  readonly pendingIs: (group: string, domain: string, pending: number) => void;
}

export function createBusFetch(context: RedisBusContext, groups: BusGroups): BusFetch {
  const { calls, space, registry, wakes, clock } = context;
  const views = new Map<string, GroupView>();

  function know({ filters }: GroupSettings, record: GroupRecord): GroupView {
    const there = views.get(record.name);
    if (there?.record.generation === record.generation) return there;
    const view = createGroupView(record, filters);
    for (const subject of fullSubjects(filters)) add(view, space.streamKey(subject));
    views.set(record.name, view);
    return view;
  }

  function add(view: GroupView, streamKey: string): void {
    if (view.streams.has(streamKey)) return;
    view.streams.add(streamKey);
    domainView(view, space.domainOf(streamKey));
  }

  function hear(wake: Wake): void {
    for (const view of views.values()) {
      if (wake.kind === 'anything') view.sweptAtMs = Number.NEGATIVE_INFINITY;
      else if (wake.kind === 'freed') {
        if (wake.group !== view.record.name) continue;
        for (const key of wake.streamKeys) if (view.streams.has(key)) view.ready.add(key);
      } else {
        const taken = wake.subjects.filter((each) => takes(view.filters, each));
        if (taken.length === 0) continue;
        for (const key of taken.map(space.streamKey)) {
          add(view, key);
          view.ready.add(key);
        }
      }
      tellNews(view);
    }
  }

  async function viewOf(settings: GroupSettings): Promise<GroupView> {
    const there = views.get(settings.name);
    if (there !== undefined) return there;
    const record = await groups.find(settings.name);
    if (record === undefined) throw unknownGroup(settings.name);
    return know(settings, record);
  }

  const sweepEveryMs = (view: GroupView): number =>
    sweepMs.every + (view.domains.size - 1) * sweepMs.perDomain;

  /** Everything is looked at, also what appeared since. */
  async function sweep(view: GroupView): Promise<void> {
    view.sweptAtMs = clock.now();
    if (fullSubjects(view.filters).length < view.filters.length) {
      try {
        const { version, subjects } = await registry.since(view.version);
        view.version = version;
        for (const subject of subjects) {
          if (takes(view.filters, subject)) add(view, space.streamKey(subject));
        }
      } catch (error) {
        view.sweptAtMs = Number.NEGATIVE_INFINITY;
        throw error;
      }
    }
    for (const key of view.streams) view.ready.add(key);
  }

  function plan(view: GroupView, isFull: boolean): Visit[] {
    const nowMs = clock.now();
    const visits: Visit[] = [];
    for (const [domain, streams] of Map.groupBy(view.ready, space.domainOf)) {
      for (let at = 0; at < streams.length; at += visitMax.streams) {
        visits.push({ domain, streams: streams.slice(at, at + visitMax.streams) });
      }
    }
    const planned = new Set(visits.map(({ domain }) => domain));
    for (const [domain, { dueAtMs, pending }] of view.domains) {
      if (planned.has(domain)) continue;
      // Others may have settled what is taken for pending here.
      if (dueAtMs <= nowMs || (isFull && pending > 0)) visits.push({ domain, streams: [] });
    }
    return visits;
  }

  async function visit(
    view: GroupView,
    settings: GroupSettings,
    { domain, streams }: Visit,
    { limit, room, isSweep }: VisitLimits,
  ): Promise<LeasedEntry[]> {
    const { native, generation } = view.record;
    const here = domainView(view, domain);
    // Taken out first: a wake-up that comes meanwhile puts it back.
    for (const key of streams) view.ready.delete(key);
    here.dueAtMs = Number.POSITIVE_INFINITY;
    let answer: readonly unknown[];
    try {
      const { leaseMs, maxAckPending } = settings;
      const most = space.isOneDomain ? maxAckPending : Math.min(maxAckPending, here.pending + room);
      const records = space.isOneDomain ? space.groups : '';
      answer = (await calls.run(
        busScripts.fetch,
        [...space.leases(domain, native), ...streams],
        [native, limit, leaseMs, most, records, settings.name, generation, isSweep ? 1 : 0],
      )) as readonly unknown[];
    } catch (error) {
      for (const key of streams) view.ready.add(key);
      here.dueAtMs = 0;
      throw error;
    }
    const [pending, nextMs, left, found] = answer as readonly [number, number, number[], Found[]];
    if (pending === -1) throw gone(settings.name);
    here.pending = pending;
    if (nextMs >= 0) here.dueAtMs = clock.now() + nextMs;
    const entries = found.map((each) => leasedEntry(native, each));
    const more = streams.filter((_, at) => left[at] === 1);
    // Who has given goes behind those that had no turn.
    const gave = new Set(entries.map(({ subject }) => space.streamKey(subject)));
    for (const key of more) if (!gave.has(key)) view.ready.add(key);
    for (const key of more) if (gave.has(key)) view.ready.add(key);
    // Another fetch of this process may wait for what this one did not take.
    if (more.length > 0 && entries.length > 0) tellNews(view);
    return entries;
  }

  function gone(name: string): Error {
    views.delete(name);
    return unknownGroup(name);
  }

  function leasedEntry(
    native: string,
    [keyBytes, idBytes, fence, count, fields]: Found,
  ): LeasedEntry {
    const [streamKey, id] = [textOf(keyBytes), textOf(idBytes)];
    return {
      ...storedEntry(space.subjectOf(streamKey) ?? streamKey, id, fields),
      token: tokenText({ native, fence: String(fence), streamKey, id }),
      deliveryCount: count,
    };
  }

  /** On a cluster the record lies elsewhere than the streams. */
  async function checkRecord({ record }: GroupView): Promise<void> {
    if (space.isOneDomain) return;
    const there = await groups.find(record.name);
    if (there?.generation !== record.generation) throw gone(record.name);
  }

  async function attempt(
    view: GroupView,
    settings: GroupSettings,
    { limit, isSweep }: { readonly limit: number; readonly isSweep: boolean },
  ): Promise<LeasedEntry[]> {
    const found: LeasedEntry[] = [];
    const roomOf = (): number => settings.maxAckPending - pendingOf(view);
    const visits = plan(view, !space.isOneDomain && roomOf() <= 0);
    // The group may be gone, and nothing else would tell.
    if (visits.length === 0 && space.isOneDomain) visits.push({ domain: 'bus', streams: [] });
    const checking = settledOf(checkRecord(view));
    // A few streams that have much are cheaper than many; more at once when they turn out to have little.
    let atOnce = space.isOneDomain ? 1 : Math.ceil(limit / visitMax.share);
    let failed: Failed | undefined;
    for (let at = 0; at < visits.length && found.length < limit && failed === undefined;) {
      const left = limit - found.length;
      const some = visits.slice(at, at + Math.min(atOnce, left, visitMax.atOnce));
      const room = Math.max(0, roomOf());
      const parts = await Promise.all(
        some.map((each, n) => {
          const limits = {
            limit: shareOf(left, some.length, n),
            room: shareOf(room, some.length, n),
            isSweep,
          };
          return settledOf(visit(view, settings, each, limits));
        }),
      );
      for (const part of parts) {
        if (part.kind === 'failed') failed = part;
        else found.push(...part.value);
      }
      at += some.length;
      if (!space.isOneDomain) atOnce *= 2;
    }
    const checked = await checking;
    const reason = checked.kind === 'failed' ? checked : failed;
    // What was leased elsewhere is handed out all the same: nobody else would get it until its lease ends.
    if (reason !== undefined && (found.length === 0 || isUnknown(reason.error))) throw reason.error;
    return found;
  }

  /** Until something is heard, or is due. */
  async function rest(
    view: GroupView,
    settings: GroupSettings,
    how: { readonly seen: number; readonly untilMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { seen, untilMs, signal } = how;
    if (view.news !== seen) return;
    const nowMs = clock.now();
    const sweepAtMs = view.sweptAtMs + sweepEveryMs(view);
    // Who leases something from now on holds it at least so long.
    const leaseEndMs = space.isOneDomain ? nowMs + settings.leaseMs : Number.POSITIVE_INFINITY;
    const lookMs = Math.max(nowMs + dueMsMin, Math.min(dueAtMsOf(view), sweepAtMs, leaseEndMs));
    const waking = new AbortController();
    const wake = (): void => waking.abort();
    view.waiting.add(wake);
    signal.addEventListener('abort', wake, { once: true });
    try {
      await clock.sleep(Math.min(lookMs, untilMs) - nowMs, waking.signal);
    } catch (error) {
      if (signal.aborted) throw aborted(signal);
      if (!waking.signal.aborted) throw error;
    } finally {
      view.waiting.delete(wake);
      signal.removeEventListener('abort', wake);
    }
  }

  return {
    know: (settings, record) => void know(settings, record),
    hear,
    pendingIs(group, domain, pending) {
      const here = views.get(group)?.domains.get(domain);
      if (here !== undefined) here.pending = pending;
    },
    async fetch(settings, { limit, waitMs, signal }) {
      if (signal.aborted) throw aborted(signal);
      const untilMs = clock.now() + waitMs;
      if (waitMs > 0) await wakes.listen();
      const isFull = (view: GroupView): boolean => pendingOf(view) >= settings.maxAckPending;
      for (let round = 0; ; round += 1) {
        const view = await viewOf(settings);
        const { news: seen } = view;
        const wasFull = isFull(view);
        const isOld = clock.now() >= view.sweptAtMs + sweepEveryMs(view);
        const isSweep = isOld || (round === 0 && waitMs === 0);
        try {
          if (isSweep) await sweep(view);
          const found = await attempt(view, settings, { limit, isSweep });
          if (found.length > 0) return found;
        } catch (error) {
          // It may have been made anew: then there is another one to find.
          if (round > 0 || !isUnknown(error)) throw error;
          continue;
        }
        if (wasFull && !isFull(view) && !space.isOneDomain) continue;
        if (clock.now() >= untilMs) return [];
        if (signal.aborted) throw aborted(signal);
        await rest(view, settings, { seen, untilMs, signal });
      }
    },
  };
}

type Found = readonly [
  key: unknown,
  id: unknown,
  fence: number,
  count: number,
  fields: readonly unknown[],
];

interface Failed {
  readonly kind: 'failed';
  readonly error: unknown;
}

async function settledOf<T>(
  work: Promise<T>,
): Promise<Failed | { readonly kind: 'done'; readonly value: T }> {
  try {
    return { kind: 'done', value: await work };
  } catch (error) {
    return { kind: 'failed', error };
  }
}

function isUnknown(error: unknown): boolean {
  return hasCode(error, 'BUS_GROUP_UNKNOWN');
}

/** The n-th of so many parts of a number. */
function shareOf(whole: number, parts: number, n: number): number {
  return Math.floor(whole / parts) + (n < whole % parts ? 1 : 0);
}
