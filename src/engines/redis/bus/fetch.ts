// Delivers messages to the members of a group. A member does not poll its streams one by one: wake-ups name the streams
// that have messages. Each visit returns how many messages remain and when the next lease expires. A periodic sweep of
// all streams finds messages whose wake-up was lost.

import type { FetchRequest, GroupSettings, LeasedEntry } from '../../../bus/bus-engine.ts';
import { unknownGroup } from '../../../bus/group-errors.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { aborted } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import { createWaiters, waitWithPoll, type Waiters } from '../../../foundation/async/waiters.ts';
import { textOf } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import { storedEntry } from './entry.ts';
import type { BusGroups, GroupRecord } from './groups.ts';
import { fullSubjects, matchesAny } from './registry.ts';
import { tokenText } from './settle.ts';
import type { Wake } from './wakes.ts';

/** The interval between sweeps grows with the number of domains, so that many domains do not cost more. */
const sweepMs = { every: 1_000, perDomain: 4 } as const;
const visitMax = {
  /** Streams per script call. */
  streams: 250,
  /** Concurrent script calls. */
  atOnce: 32,
  /** Messages that each of the concurrent calls requests at first. */
  share: 16,
} as const;
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
  /** Called when the group was created or replaced. */
  readonly addGroup: (settings: GroupSettings, record: GroupRecord) => void;
  readonly onWake: (wake: Wake) => void;
  readonly setPending: (group: string, domain: string, pending: number) => void;
}

export function createBusFetch(context: RedisBusContext, groups: BusGroups): BusFetch {
  const { redis, keyspace, registry, wakes, clock } = context;
  const views = new Map<string, GroupView>();

  function addGroup({ filters }: GroupSettings, record: GroupRecord): GroupView {
    const known = views.get(record.name);
    if (known?.record.generation === record.generation) return known;
    const view = createGroupView(record, filters);
    for (const subject of fullSubjects(filters)) add(view, keyspace.streamKey(subject));
    views.set(record.name, view);
    return view;
  }

  function add(view: GroupView, streamKey: string): void {
    if (view.streams.has(streamKey)) return;
    view.streams.add(streamKey);
    domainView(view, keyspace.domainOf(streamKey));
  }

  function onWake(wake: Wake): void {
    for (const view of views.values()) {
      if (wake.kind === 'anything') view.sweptAtMs = Number.NEGATIVE_INFINITY;
      else if (wake.kind === 'freed') {
        if (wake.group !== view.record.name) continue;
        for (const key of wake.streamKeys) if (view.streams.has(key)) view.ready.add(key);
      } else {
        const matching = wake.subjects.filter((each) => matchesAny(view.filters, each));
        if (matching.length === 0) continue;
        for (const key of matching.map(keyspace.streamKey)) {
          add(view, key);
          view.ready.add(key);
        }
      }
      wakeWaiting(view);
    }
  }

  async function viewOf(settings: GroupSettings): Promise<GroupView> {
    const known = views.get(settings.name);
    if (known !== undefined) return known;
    const record = await groups.find(settings.name);
    if (record === undefined || record.damaged !== undefined) throw unknownGroup(settings.name);
    return addGroup(settings, record);
  }

  const sweepEveryMs = (view: GroupView): number =>
    sweepMs.every + (view.domains.size - 1) * sweepMs.perDomain;

  /** Marks all streams as ready, including those that were registered since the last sweep. */
  async function sweep(view: GroupView): Promise<void> {
    view.sweptAtMs = clock.now();
    if (fullSubjects(view.filters).length < view.filters.length) {
      try {
        const { version, subjects } = await registry.since(view.version);
        view.version = version;
        for (const subject of subjects) {
          if (matchesAny(view.filters, subject)) add(view, keyspace.streamKey(subject));
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
    for (const [domain, streams] of Map.groupBy(view.ready, keyspace.domainOf)) {
      const batches = batchesOf(streams, { countMax: visitMax.streams });
      visits.push(...batches.map((some) => ({ domain, streams: some })));
    }
    const planned = new Set(visits.map(({ domain }) => domain));
    for (const [domain, { dueAtMs, pending }] of view.domains) {
      if (planned.has(domain)) continue;
      // Another process may have settled messages that count as pending here.
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
    const state = domainView(view, domain);
    // Removed before the visit: a wake-up during the visit adds the stream again.
    for (const key of streams) view.ready.delete(key);
    state.dueAtMs = Number.POSITIVE_INFINITY;
    let reply: readonly unknown[];
    try {
      const { leaseMs, maxAckPending } = settings;
      const pendingMax = keyspace.isOneDomain
        ? maxAckPending
        : Math.min(maxAckPending, state.pending + room);
      const records = keyspace.isOneDomain ? keyspace.groups : '';
      reply = (await redis.runForBytes(
        busScripts.fetch,
        [...keyspace.leases(domain, native), ...streams],
        [native, limit, leaseMs, pendingMax, records, settings.name, generation, isSweep ? 1 : 0],
      )) as readonly unknown[];
    } catch (error) {
      for (const key of streams) view.ready.add(key);
      state.dueAtMs = 0;
      throw error;
    }
    const [pending, nextMs, mayHaveMore, found] = reply as readonly [
      number,
      number,
      number[],
      Found[],
    ];
    if (pending === -1) throw groupDeleted(settings.name);
    state.pending = pending;
    if (nextMs >= 0) state.dueAtMs = clock.now() + nextMs;
    const entries = found.map((each) => leasedEntry(native, each));
    const more = streams.filter((_, at) => mayHaveMore[at] === 1);
    // Served streams queue after those that were not served, which get their turn next.
    const served = new Set(entries.map(({ subject }) => keyspace.streamKey(subject)));
    for (const key of more) if (!served.has(key)) view.ready.add(key);
    for (const key of more) if (served.has(key)) view.ready.add(key);
    // Another fetch of this process may wait for the remaining messages.
    if (more.length > 0 && entries.length > 0) wakeWaiting(view);
    return entries;
  }

  function groupDeleted(name: string): Error {
    views.delete(name);
    return unknownGroup(name);
  }

  function leasedEntry(
    native: string,
    [keyBytes, idBytes, fence, count, fields]: Found,
  ): LeasedEntry {
    const [streamKey, id] = [textOf(keyBytes), textOf(idBytes)];
    return {
      ...storedEntry(keyspace.subjectOf(streamKey) ?? streamKey, id, fields),
      token: tokenText({ native, fence: String(fence), streamKey, id }),
      deliveryCount: count,
    };
  }

  /** On a cluster, the script cannot check the record, which is in another slot. */
  async function checkRecord({ record }: GroupView): Promise<void> {
    if (keyspace.isOneDomain) return;
    const current = await groups.find(record.name);
    if (current?.generation !== record.generation) throw groupDeleted(record.name);
  }

  async function attempt(
    view: GroupView,
    settings: GroupSettings,
    { limit, isSweep }: { readonly limit: number; readonly isSweep: boolean },
  ): Promise<LeasedEntry[]> {
    const found: LeasedEntry[] = [];
    const roomOf = (): number => settings.maxAckPending - pendingOf(view);
    const visits = plan(view, !keyspace.isOneDomain && roomOf() <= 0);
    // A visit without streams detects that the group was deleted.
    if (visits.length === 0 && keyspace.isOneDomain) visits.push({ domain: 'bus', streams: [] });
    const checking = Promise.allSettled([checkRecord(view)]);
    // Visit few domains first, which is cheaper if they have many messages; double the number if they have few.
    let concurrency = keyspace.isOneDomain ? 1 : Math.ceil(limit / visitMax.share);
    let failed: PromiseRejectedResult | undefined;
    for (let at = 0; at < visits.length && found.length < limit && failed === undefined;) {
      const left = limit - found.length;
      const some = visits.slice(at, at + Math.min(concurrency, left, visitMax.atOnce));
      const room = Math.max(0, roomOf());
      const parts = await Promise.allSettled(
        some.map((each, n) =>
          visit(view, settings, each, {
            limit: shareOf(left, some.length, n),
            room: shareOf(room, some.length, n),
            isSweep,
          }),
        ),
      );
      for (const part of parts) {
        if (part.status === 'rejected') failed = part;
        else found.push(...part.value);
      }
      at += some.length;
      if (!keyspace.isOneDomain) concurrency *= 2;
    }
    const [checked] = await checking;
    const rejected = checked.status === 'rejected' ? checked : failed;
    // Return the messages that were leased in other domains: until the lease expires, no other member can get them.
    if (rejected !== undefined && (found.length === 0 || isUnknown(rejected.reason))) {
      throw rejected.reason;
    }
    return found;
  }

  /** Waits for a wake-up, for an expired lease, or for the next sweep. */
  async function waitForWork(
    view: GroupView,
    settings: GroupSettings,
    wait: { readonly seen: number; readonly untilMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { seen, untilMs, signal } = wait;
    if (view.wakeUps !== seen) return;
    const nowMs = clock.now();
    const sweepAtMs = view.sweptAtMs + sweepEveryMs(view);
    // A lease that starts from now on does not expire before this time.
    const leaseEndMs = keyspace.isOneDomain ? nowMs + settings.leaseMs : Number.POSITIVE_INFINITY;
    const pollAtMs = Math.max(nowMs + dueMsMin, Math.min(dueAtMsOf(view), sweepAtMs, leaseEndMs));
    const pollMs = Math.min(pollAtMs, untilMs) - nowMs;
    await waitWithPoll(view.waiters, { clock, pollMs, signal });
  }

  return {
    addGroup: (settings, record) => void addGroup(settings, record),
    onWake,
    setPending(group, domain, pending) {
      const state = views.get(group)?.domains.get(domain);
      if (state !== undefined) state.pending = pending;
    },
    async fetch(settings, { limit, waitMs, signal }) {
      if (signal.aborted) throw aborted(signal);
      const untilMs = clock.now() + waitMs;
      if (waitMs > 0) await wakes.listen();
      const isFull = (view: GroupView): boolean => pendingOf(view) >= settings.maxAckPending;
      for (let round = 0; ; round += 1) {
        const view = await viewOf(settings);
        const { wakeUps: seen } = view;
        const wasFull = isFull(view);
        const isOld = clock.now() >= view.sweptAtMs + sweepEveryMs(view);
        const isSweep = isOld || (round === 0 && waitMs === 0);
        try {
          if (isSweep) await sweep(view);
          const found = await attempt(view, settings, { limit, isSweep });
          if (found.length > 0) return found;
        } catch (error) {
          // The group may have been created again, so the next round looks it up.
          if (round > 0 || !isUnknown(error)) throw error;
          continue;
        }
        if (wasFull && !isFull(view) && !keyspace.isOneDomain) continue;
        if (clock.now() >= untilMs) return [];
        if (signal.aborted) throw aborted(signal);
        await waitForWork(view, settings, { seen, untilMs, signal });
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

function isUnknown(error: unknown): boolean {
  return hasCode(error, 'BUS_GROUP_UNKNOWN');
}

/** The size of part `n` if `whole` is split into almost equal parts. */
function shareOf(whole: number, parts: number, n: number): number {
  return Math.floor(whole / parts) + (n < whole % parts ? 1 : 0);
}

/** The state of a group that this process caches between two fetches; Redis holds the authoritative state. */
interface GroupView {
  readonly record: GroupRecord;
  readonly filters: readonly string[];
  readonly domains: Map<string, DomainView>;
  readonly streams: Set<string>;
  /** Streams that may have unread messages. */
  readonly ready: Set<string>;
  version: number;
  sweptAtMs: number;
  /** Number of wake-ups, by which a waiting fetch detects a new one. */
  wakeUps: number;
  readonly waiters: Waiters;
}

interface DomainView {
  /** Number of pending messages at the last visit. */
  pending: number;
  /** The time when the next lease expires. */
  dueAtMs: number;
}

function createGroupView(record: GroupRecord, filters: readonly string[]): GroupView {
  return {
    record,
    filters,
    domains: new Map(),
    streams: new Set(),
    ready: new Set(),
    version: 0,
    sweptAtMs: Number.NEGATIVE_INFINITY,
    wakeUps: 0,
    waiters: createWaiters(),
  };
}

function domainView(view: GroupView, domain: string): DomainView {
  let domainState = view.domains.get(domain);
  if (domainState === undefined) {
    domainState = { pending: 0, dueAtMs: Number.POSITIVE_INFINITY };
    view.domains.set(domain, domainState);
  }
  return domainState;
}

function pendingOf(view: GroupView): number {
  let pending = 0;
  for (const each of view.domains.values()) pending += each.pending;
  return pending;
}

function dueAtMsOf(view: GroupView): number {
  let dueAtMs = Number.POSITIVE_INFINITY;
  for (const each of view.domains.values()) dueAtMs = Math.min(dueAtMs, each.dueAtMs);
  return dueAtMs;
}

function wakeWaiting(view: GroupView): void {
  view.wakeUps += 1;
  view.waiters.wakeAll();
}
