// A ledger in memory, for unit tests: the same rules, within one process.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { createIds } from '../foundation/ids.ts';
import { createWaiters, waitWithPoll } from '../foundation/async/waiters.ts';
import type { OutboxRow } from './check-outbox.ts';
import {
  attemptJson,
  createOutboxLedger,
  type EngineClaim,
  type EngineRenewal,
  type OutboxEngine,
  type OutboxLedgerOptions,
  withCause,
} from './create-outbox-ledger.ts';
import { outboxLimits } from './outbox-limits.ts';
import { jobsKept, outboxJobs, type JobEntry } from './outbox-job.ts';
import type {
  Enqueued,
  OutboxFilter,
  OutboxLedger,
  OutboxOutcome,
  OutboxSource,
  PausedDestination,
  Renewed,
  SettleOutcome,
} from './outbox-ledger.ts';
import type {
  ClaimedMessage,
  Discarded,
  OutboxClaim,
  OutboxMessage,
  OutboxStatus,
} from './outbox-message.ts';

interface Entry {
  readonly id: string;
  readonly row: OutboxRow;
  readonly createdAtMs: number;
  state: 'waiting' | 'sent' | 'dead' | 'discarded';
  dueAtMs: number;
  attempts: number;
  starts: number;
  token: number;
  leaseUntilMs: number;
  lockedAtMs: number | undefined;
  lockedBy: string | undefined;
  updatedAtMs: number;
  sentAtMs: number | undefined;
  lastError: string | undefined;
  discarded: Discarded | undefined;
  jobs: readonly JobEntry[];
  /** JSON. */
  attemptLog: readonly string[];
}

/**
 * A ledger in memory.
 *
 * @example
 * import { memoryOutboxLedger } from 'millrace/outbox';
 *
 * const ledger = memoryOutboxLedger();
 * console.log(await ledger.counts()); // all zero
 */
export function memoryOutboxLedger(
  options: OutboxLedgerOptions & { readonly clock?: Clock | undefined } = {},
): OutboxLedger<never> {
  const { clock = systemClock } = options;
  const ids = createIds({ clock });
  const entries = new Map<string, Entry>();
  const bySource = new Map<string, Entry>();
  const pausedTypes = new Map<string, PausedDestination>();
  const waiters = createWaiters();
  /** A message was enqueued while no dispatcher was waiting: the next wait must return at once. */
  let isNotified = false;
  let lastToken = 0;
  let firstLane = 0;

  const isLeased = (entry: Entry, nowMs: number): boolean => entry.leaseUntilMs > nowMs;

  function add(row: OutboxRow): Enqueued {
    const source = JSON.stringify([row.sourceStreamId, row.sourceEventId, row.integrationType]);
    const known = bySource.get(source);
    if (known !== undefined) return { id: known.id, isDuplicate: true };
    const nowMs = clock.now();
    const entry: Entry = {
      id: ids.next(),
      row,
      createdAtMs: nowMs,
      state: 'waiting',
      dueAtMs: row.dueAtMs ?? nowMs,
      attempts: 0,
      starts: 0,
      token: 0,
      leaseUntilMs: 0,
      lockedAtMs: undefined,
      lockedBy: undefined,
      updatedAtMs: nowMs,
      sentAtMs: undefined,
      lastError: undefined,
      discarded: undefined,
      jobs: [],
      attemptLog: [],
    };
    entries.set(entry.id, entry);
    bySource.set(source, entry);
    return { id: entry.id, isDuplicate: false };
  }

  function settleOne(outcome: OutboxOutcome): SettleOutcome {
    const entry = entries.get(outcome.claim.id);
    if (entry?.state !== 'waiting' || entry.token === 0) return 'stale';
    if (String(entry.token) !== outcome.claim.token) return 'stale';
    const nowMs = clock.now();
    entry.jobs = jobsAfter(entry, outcome.kind, nowMs);
    const attempt = attemptJson(outcome);
    if (attempt !== null)
      entry.attemptLog = [...entry.attemptLog, attempt].slice(-outboxLimits.attemptsKept);
    Object.assign(entry, { token: 0, leaseUntilMs: 0, lockedAtMs: undefined, lockedBy: undefined });
    entry.updatedAtMs = nowMs;
    switch (outcome.kind) {
      case 'sent':
        entry.state = 'sent';
        entry.sentAtMs = nowMs;
        break;
      case 'failed':
        entry.attempts += 1;
        entry.lastError = outcome.error;
        entry.dueAtMs = outcome.nextDueAt.getTime();
        break;
      case 'dead':
        entry.state = 'dead';
        entry.attempts += 1;
        entry.lastError = outcome.error;
        break;
      default:
        entry.starts -= 1;
        entry.dueAtMs = outcome.dueAt?.getTime() ?? entry.dueAtMs;
    }
    return 'settled';
  }

  function claim({ workerId, limit, leaseMs }: EngineClaim): readonly ClaimedMessage[] {
    const nowMs = clock.now();
    const lanes = new Map<number, Entry[]>();
    const heads = new Set<number>();
    for (const entry of entries.values()) {
      if (entry.state !== 'waiting') continue;
      const { orderHash, lane, integrationType } = entry.row;
      const isBehind = orderHash !== null && heads.has(orderHash);
      if (orderHash !== null) heads.add(orderHash);
      if (isBehind || entry.dueAtMs > nowMs || isLeased(entry, nowMs)) continue;
      if (pausedTypes.has(integrationType)) continue;
      const inLane = lanes.get(lane) ?? [];
      inLane.push(entry);
      lanes.set(lane, inLane);
    }
    const order = [...lanes.keys()].toSorted((a, b) => a - b);
    const rotated = [...order.filter((l) => l > firstLane), ...order.filter((l) => l <= firstLane)];
    const taken: Entry[] = [];
    for (let depth = 0; taken.length < limit; depth += 1) {
      const layer = rotated.flatMap((lane) => lanes.get(lane)?.[depth] ?? []);
      if (layer.length === 0) break;
      taken.push(...layer.slice(0, limit - taken.length));
    }
    firstLane = taken.at(-1)?.row.lane ?? firstLane;
    lastToken += 1;
    return taken.map((entry) => {
      entry.token = lastToken;
      entry.starts += 1;
      entry.leaseUntilMs = nowMs + leaseMs;
      entry.lockedAtMs = nowMs;
      entry.lockedBy = workerId;
      entry.updatedAtMs = nowMs;
      return { ...toMessage(entry), token: String(entry.token), starts: entry.starts };
    });
  }

  function renew(
    { id, token }: OutboxClaim,
    { workerId, leaseMs, perTenant }: EngineRenewal,
  ): Renewed {
    const entry = entries.get(id);
    if (entry?.state !== 'waiting' || entry.token === 0) return 'stale';
    if (String(entry.token) !== token) return 'stale';
    if (pausedTypes.has(entry.row.integrationType)) {
      settleOne({ kind: 'released', claim: { id, token } });
      return 'paused';
    }
    const nowMs = clock.now();
    lastToken += 1;
    const { attempts, token: was, lockedAtMs = nowMs, jobs } = entry;
    const job: JobEntry = [attempts + 1, was, lastToken, perTenant, lockedAtMs, nowMs];
    entry.jobs = [...jobs, job].slice(-jobsKept);
    Object.assign(entry, { token: lastToken, leaseUntilMs: nowMs + leaseMs, lockedBy: workerId });
    Object.assign(entry, { lockedAtMs: nowMs, updatedAtMs: nowMs });
    return { ...toMessage(entry), token: String(lastToken), starts: entry.starts };
  }

  function statusOf(entry: Entry): OutboxStatus {
    if (entry.state === 'sent') return 'SENT';
    if (entry.state === 'dead') return 'DEAD';
    if (entry.state === 'discarded') return 'DISCARDED';
    if (isLeased(entry, clock.now())) return 'CLAIMED';
    return entry.attempts > 0 ? 'FAILED' : 'PENDING';
  }

  function toMessage(entry: Entry): OutboxMessage {
    const { row, lockedAtMs, sentAtMs } = entry;
    return {
      id: entry.id,
      sourceStreamId: row.sourceStreamId,
      sourceEventId: row.sourceEventId,
      integrationType: row.integrationType,
      eventType: row.eventType,
      payload: JSON.parse(row.payload) as Record<string, unknown>,
      headers:
        row.headers === null ? undefined : (JSON.parse(row.headers) as Record<string, unknown>),
      tenantId: row.tenantId ?? undefined,
      userId: row.userId ?? undefined,
      correlationId: row.correlationId ?? undefined,
      orderingKey: row.orderingKey ?? undefined,
      dueAt: new Date(entry.dueAtMs),
      attempts: entry.attempts,
      maxAttempts: row.maxAttempts,
      status: statusOf(entry),
      lockedAt: lockedAtMs === undefined ? undefined : new Date(lockedAtMs),
      lockedBy: entry.lockedBy,
      createdAt: new Date(entry.createdAtMs),
      updatedAt: new Date(entry.updatedAtMs),
      sentAt: sentAtMs === undefined ? undefined : new Date(sentAtMs),
      lastError: entry.lastError,
    };
  }

  function withJobs(entry: Entry): OutboxMessage {
    const last = entry.attemptLog.at(-1);
    const message = withCause({ ...toMessage(entry), discarded: entry.discarded }, last);
    if (entry.jobs.length === 0) return message;
    return { ...message, jobs: outboxJobs(entry.jobs, message, String) };
  }

  function sentFirst(sentBeforeMs: number, limit: number): readonly Entry[] {
    return [...entries.values()]
      .filter(({ state, sentAtMs }) => state === 'sent' && Number(sentAtMs) < sentBeforeMs)
      .toSorted((one, other) => Number(one.sentAtMs) - Number(other.sentAtMs))
      .slice(0, limit);
  }

  function forget(old: readonly Entry[]): void {
    for (const { id, row } of old) {
      entries.delete(id);
      bySource.delete(JSON.stringify([row.sourceStreamId, row.sourceEventId, row.integrationType]));
    }
  }

  function matching(filter: OutboxFilter): readonly Entry[] {
    const { ids: wanted, status, integrationType, tenantId, since } = filter;
    return [...entries.values()].filter((entry) => {
      const sinceMs =
        entry.state === 'dead' || entry.state === 'discarded'
          ? entry.updatedAtMs
          : entry.createdAtMs;
      return (
        (wanted === undefined || wanted.includes(entry.id)) &&
        (status === undefined || statusOf(entry) === status) &&
        (integrationType === undefined || entry.row.integrationType === integrationType) &&
        (tenantId === undefined || entry.row.tenantId === tenantId) &&
        (since === undefined || sinceMs >= since.getTime())
      );
    });
  }

  const unclaimed = (chosen: readonly string[]): readonly Entry[] =>
    matching({ ids: chosen }).filter((entry) => ['PENDING', 'FAILED'].includes(statusOf(entry)));
  function wakeAll(): void {
    isNotified = waiters.size === 0;
    waiters.wakeAll();
  }

  const engine: OutboxEngine<never> = {
    capabilities: { durable: false, crossProcess: false, callerTransaction: false },
    async enqueue(rows) {
      const enqueued = rows.map(add);
      wakeAll();
      return enqueued;
    },
    claim: async (request) => claim(request),
    settle: async (outcomes) => outcomes.map(settleOne),
    renew: async (claims, request) => claims.map((each) => renew(each, request)),
    async extend(claims, leaseMs) {
      return claims.map(({ id, token }) => {
        const entry = entries.get(id);
        if (entry?.state !== 'waiting' || String(entry.token) !== token) return false;
        entry.leaseUntilMs = clock.now() + leaseMs;
        return true;
      });
    },
    async whenDue(pollMs, signal) {
      if (!isNotified) await waitWithPoll(waiters, { clock, pollMs, signal });
      isNotified = false;
    },
    async list(filter, { limit, after, charsMax }) {
      let chars = 0;
      return matching(filter)
        .filter(({ id }) => after === undefined || id > after)
        .slice(0, limit)
        .filter(({ row: { payload, headers } }, at) => {
          const isInPage = at === 0 || chars < charsMax;
          chars += payload.length + (headers?.length ?? 0);
          return isInPage;
        })
        .map(withJobs);
    },
    async bySource(sources, limit) {
      const wanted = new Set(sources.map(sourceKey));
      return [...entries.values()]
        .filter(({ row }) => wanted.has(sourceKey(row)))
        .slice(0, limit)
        .map(withJobs);
    },
    async erase(sources, payload) {
      const wanted = new Set(sources.map(sourceKey));
      for (const entry of entries.values()) {
        if (!wanted.has(sourceKey(entry.row))) continue;
        const row = { ...entry.row, payload, headers: null };
        Object.assign(entry, { row, lastError: undefined, attemptLog: [] });
      }
    },
    attempts: async (id) => entries.get(id)?.attemptLog ?? [],
    async counts() {
      const counts = { PENDING: 0, CLAIMED: 0, SENT: 0, FAILED: 0, DEAD: 0, DISCARDED: 0 };
      for (const entry of entries.values()) counts[statusOf(entry)] += 1;
      return counts;
    },
    async replay(filter, limit) {
      const dead = matching({ ...filter, status: 'DEAD' }).slice(0, limit);
      const nowMs = clock.now();
      for (const entry of dead) {
        Object.assign(entry, { state: 'waiting', attempts: 0, starts: 0 });
        Object.assign(entry, { dueAtMs: nowMs, updatedAtMs: nowMs });
      }
      if (dead.length > 0) wakeAll();
      return dead.length;
    },
    async retryNow(chosen) {
      const found = unclaimed(chosen).filter(({ dueAtMs }) => dueAtMs > clock.now());
      for (const entry of found) entry.dueAtMs = clock.now();
      wakeAll();
      return found.map(({ id }) => id);
    },
    async discard(chosen, discarded) {
      const found = [...unclaimed(chosen), ...matching({ ids: chosen, status: 'DEAD' })];
      for (const entry of found) {
        entry.discarded = JSON.parse(discarded) as Discarded;
        Object.assign(entry, { state: 'discarded', updatedAtMs: clock.now() });
        Object.assign(entry, { lockedAtMs: undefined, lockedBy: undefined });
      }
      wakeAll();
      return found.map(({ id }) => id);
    },
    async purge(sentBeforeMs, limit) {
      const old = sentFirst(sentBeforeMs, limit);
      forget(old);
      return old.length;
    },
    sentFirst: async (sentBeforeMs, limit) => sentFirst(sentBeforeMs, limit).map(withJobs),
    forget: async (old) =>
      forget(old.flatMap((id) => entries.get(id) ?? []).filter(({ state }) => state === 'sent')),
    async pause(integrationType, by) {
      if (pausedTypes.has(integrationType)) return false;
      const pausedAt = new Date(clock.now());
      pausedTypes.set(integrationType, { integrationType, pausedAt, pausedBy: by });
      return true;
    },
    async resume(integrationType) {
      const was = pausedTypes.delete(integrationType);
      wakeAll();
      return was;
    },
    paused: async () => [...pausedTypes.values()],
    [Symbol.asyncDispose]: async () => wakeAll(),
  };
  return createOutboxLedger(engine, options);
}

/** A job whose message was released is removed. */
function jobsAfter(
  { jobs, token }: Entry,
  outcome: OutboxOutcome['kind'],
  nowMs: number,
): readonly JobEntry[] {
  const last = jobs.at(-1);
  if (last?.[2] !== token) return jobs;
  const [attempt, was, taken, perTenant, claimedMs, startedMs] = last;
  const ended: JobEntry | undefined =
    outcome === 'released'
      ? undefined
      : [attempt, was, taken, perTenant, claimedMs, startedMs, nowMs, outcome];
  return [...jobs.slice(0, -1), ...(ended === undefined ? [] : [ended])];
}

function sourceKey({ sourceStreamId, sourceEventId }: OutboxSource): string {
  return JSON.stringify([sourceStreamId, sourceEventId]);
}
