// The part that all ledgers share: validation, and the single calls on top of the batch calls. An engine
// implements the rest.

import { MillraceError } from '../foundation/error.ts';
import { parseStored } from '../foundation/parse-json.ts';
import {
  checkClaim,
  checkFilter,
  findableSources,
  isOutboxId,
  lastErrorText,
  pageLimit,
  text,
  time,
  toOutboxRows,
  type OutboxRow,
} from './check-outbox.ts';
import type { JobEntry } from './outbox-job.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type {
  Enqueued,
  OutboxFilter,
  OutboxLedger,
  OutboxOutcome,
  OutboxSource,
  Renewed,
  SettleOutcome,
} from './outbox-ledger.ts';
import type {
  ClaimedMessage,
  DeliveryAttempt,
  EnqueueOutboxProps,
  OutboxClaim,
  OutboxMessage,
} from './outbox-message.ts';

/** The arguments of `claimDueBatch` with all defaults. */
export interface EngineClaim {
  readonly workerId: string;
  readonly limit: number;
  readonly leaseMs: number;
}

/** `RenewRequest` with all defaults. */
interface EngineRenewal {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly perTenant: boolean;
}

/** `OutboxPage` with all defaults. */
interface EnginePage {
  readonly limit: number;
  readonly after: string | undefined;
  readonly oldestFirst: boolean;
  readonly charsMax: number;
}

/** Implemented by an adapter; its arguments are already validated. */
export interface OutboxEngine<Transaction>
  extends
    AsyncDisposable,
    Pick<
      OutboxLedger,
      'capabilities' | 'database' | 'whenDue' | 'counts' | 'pause' | 'resume' | 'paused'
    > {
  enqueue(rows: readonly OutboxRow[], transaction?: Transaction): Promise<readonly Enqueued[]>;
  claim(request: EngineClaim): Promise<readonly ClaimedMessage[]>;
  /** At least one outcome, and no claim twice. */
  settle(outcomes: readonly OutboxOutcome[]): Promise<readonly SettleOutcome[]>;
  /** At least one claim, and none twice. */
  renew(claims: readonly OutboxClaim[], request: EngineRenewal): Promise<readonly Renewed[]>;
  extend(claims: readonly OutboxClaim[], leaseMs: number): Promise<readonly boolean[]>;
  list(filter: OutboxFilter, page: EnginePage): Promise<readonly OutboxMessage[]>;
  /** The JSON of the stored attempts, oldest first. */
  attempts(id: string): Promise<readonly string[]>;
  /** Payload and headers are not read. */
  bySource(sources: readonly OutboxSource[], limit: number): Promise<readonly OutboxMessage[]>;
  erase(sources: readonly OutboxSource[], payload: string): Promise<void>;
  replay(filter: OutboxFilter, limit: number): Promise<number>;
  /** At least one id. */
  retryNow(ids: readonly string[]): Promise<readonly string[]>;
  /** At least one id; the second argument is the JSON of `Discarded`. */
  discard(ids: readonly string[], discarded: string): Promise<readonly string[]>;
  purge(sentBeforeMs: number, limit: number): Promise<number>;
  /** SENT messages, oldest first by the time they were sent. */
  sentFirst(sentBeforeMs: number, limit: number): Promise<readonly OutboxMessage[]>;
  /** Removes the SENT messages among these. */
  forget(ids: readonly string[]): Promise<void>;
}

export interface OutboxLedgerOptions {
  /** The attempts of a message that is enqueued without `maxAttempts`. Default: 10. */
  readonly outboxMaxAttempts?: number | undefined;
}

export function createOutboxLedger<Transaction>(
  engine: OutboxEngine<Transaction>,
  { outboxMaxAttempts }: OutboxLedgerOptions = {},
): OutboxLedger<Transaction> {
  const enqueueMany = async (
    items: readonly EnqueueOutboxProps[],
    transaction?: Transaction,
  ): Promise<readonly Enqueued[]> => {
    const rows = toOutboxRows(items, outboxMaxAttempts);
    return rows.length === 0 ? [] : engine.enqueue(rows, transaction);
  };

  const settle = async (outcomes: readonly OutboxOutcome[]): Promise<readonly SettleOutcome[]> => {
    const run = (unique: readonly OutboxOutcome[]) => engine.settle(unique.map(checked));
    return oncePerClaim(outcomes, ({ claim }) => claim, run);
  };

  const settleOne = async (outcome: OutboxOutcome): Promise<SettleOutcome> => {
    const [result] = await settle([outcome]);
    return result ?? 'stale';
  };

  const renew: OutboxLedger['renew'] = async (claims, request) => {
    const { workerId, leaseMs = limits.leaseMsDefault, perTenant = false } = request;
    checkClaim(workerId, 1, leaseMs);
    const run = (unique: readonly OutboxClaim[]) =>
      engine.renew(unique, { workerId, leaseMs, perTenant });
    return oncePerClaim(claims, (claim) => claim, run);
  };

  const find: OutboxLedger['find'] = async (id) => {
    if (!isOutboxId(id)) return undefined;
    const page = { limit: 1, after: undefined, oldestFirst: false, charsMax: 0 };
    const [found] = await engine.list({ ids: [id] }, page);
    return found;
  };

  return {
    database: engine.database,
    capabilities: engine.capabilities,
    enqueueMany: (items) => enqueueMany(items),
    async enqueue(item) {
      const [enqueued] = await enqueueMany([item]);
      const stored = enqueued && (await find(enqueued.id));
      if (stored === undefined)
        throw new MillraceError('STORE_CORRUPT', 'the ledger has no row of the enqueued message');
      return { ...stored, isDuplicate: enqueued?.isDuplicate === true };
    },
    async enqueueIn(transaction, items) {
      if (engine.capabilities.callerTransaction) return enqueueMany(items, transaction);
      throw new MillraceError(
        'NOT_SUPPORTED',
        'enqueueIn failed: this ledger has no capability callerTransaction; use enqueueMany',
        { details: { capability: 'callerTransaction' } },
      );
    },
    async claimDueBatch(workerId, limit, { leaseMs = limits.leaseMsDefault } = {}) {
      checkClaim(workerId, limit, leaseMs);
      return engine.claim({ workerId, limit, leaseMs });
    },
    markSent: (claim) => settleOne({ kind: 'sent', claim }),
    markFailed: (claim, error, nextDueAt) => settleOne({ kind: 'failed', claim, error, nextDueAt }),
    deadLetter: (claim, error) => settleOne({ kind: 'dead', claim, error }),
    release: (claim, dueAt) => settleOne({ kind: 'released', claim, dueAt }),
    settle,
    renew,
    async extend(claims, { leaseMs = limits.leaseMsDefault } = {}) {
      checkClaim('extend', 1, leaseMs);
      return claims.length === 0 ? [] : engine.extend(claims, leaseMs);
    },
    whenDue: (pollMs, signal) => engine.whenDue(pollMs, signal),
    find,
    async getAttempts(id) {
      const found = await find(id);
      if (found !== undefined) return found.attempts;
      throw new MillraceError('OUTBOX_UNKNOWN', `unknown message '${id}'`, { details: { id } });
    },
    async attemptLog(id) {
      if (!isOutboxId(id)) return [];
      return (await engine.attempts(id)).flatMap(
        (each) => (objectOf(each) as DeliveryAttempt | undefined) ?? [],
      );
    },
    async list(filter, page) {
      checkFilter(filter);
      const { after, oldestFirst = false, charsMax = Number.MAX_SAFE_INTEGER } = page ?? {};
      return engine.list(filter, { limit: pageLimit(page), after, oldestFirst, charsMax });
    },
    async bySource(sources, limit = limits.listMax) {
      const findable = findableSources(sources);
      if (findable.length === 0) return [];
      const messages = await engine.bySource(findable, pageLimit({ limit }));
      return messages.map(({ payload: _payload, headers: _headers, ...head }) => head);
    },
    async erase(sources, forgotten) {
      const findable = findableSources(sources);
      if (findable.length > 0) await engine.erase(findable, JSON.stringify(forgotten));
    },
    counts: () => engine.counts(),
    async replay(filter, limit = Number.MAX_SAFE_INTEGER) {
      checkFilter(filter);
      // In small commits, so that enqueuing is not blocked.
      let replayed = 0;
      while (replayed < limit) {
        const size = Math.min(limit - replayed, limits.purgeBatchDefault);
        const count = await engine.replay(filter, size);
        replayed += count;
        if (count < size) break;
      }
      return replayed;
    },
    async retryNow(ids) {
      checkFilter({ ids });
      return ids.length === 0 ? [] : engine.retryNow(ids);
    },
    async discard(ids, { by, reason }) {
      checkFilter({ ids });
      text('by', by, limits.workerIdMax);
      text('reason', reason, limits.lastErrorMax);
      return ids.length === 0 ? [] : engine.discard(ids, JSON.stringify({ by, reason }));
    },
    purge: async (sentBefore, limit = limits.purgeBatchDefault) =>
      engine.purge(time('sentBefore', sentBefore), limit),
    async archive(sentBefore, keep, limit = limits.purgeBatchDefault) {
      const messages = await engine.sentFirst(time('sentBefore', sentBefore), limit);
      if (messages.length === 0) return 0;
      await keep(messages);
      await engine.forget(messages.map(({ id }) => id));
      return messages.length;
    },
    async pause(integrationType, by) {
      text('integrationType', integrationType, limits.integrationTypeMax);
      text('by', by, limits.workerIdMax);
      return engine.pause(integrationType, by);
    },
    resume: (integrationType) => engine.resume(integrationType),
    paused: () => engine.paused(),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  };
}

/** If a claim occurs twice, the first occurrence counts, and the others are stale. */
async function oncePerClaim<Item, Result>(
  items: readonly Item[],
  claimOf: (item: Item) => OutboxClaim,
  run: (unique: readonly Item[]) => Promise<readonly Result[]>,
): Promise<readonly (Result | 'stale')[]> {
  if (items.length === 0) return [];
  // Most engines give each claim its own token: if all tokens differ, no claim occurs twice.
  if (new Set(items.map((item) => claimOf(item).token)).size === items.length) return run(items);
  const seen = new Set<string>();
  const isFirst = items.map((item) => {
    const { id, token } = claimOf(item);
    const before = seen.size;
    return seen.add(`${id} ${token}`).size > before;
  });
  const results = (await run(items.filter((_item, at) => isFirst[at]))).values();
  return isFirst.map((isUnique) => (isUnique ? results.next().value : undefined) ?? 'stale');
}

function checked(outcome: OutboxOutcome): OutboxOutcome {
  if (outcome.kind === 'failed') {
    time('nextDueAt', outcome.nextDueAt);
    return { ...outcome, error: lastErrorText(outcome.error) };
  }
  if (outcome.kind === 'dead') return { ...outcome, error: lastErrorText(outcome.error) };
  if (outcome.kind === 'released' && outcome.dueAt !== undefined) time('dueAt', outcome.dueAt);
  return outcome;
}

/** The attempt to store with an outcome, as JSON. */
export function attemptJson(outcome: OutboxOutcome): string | null {
  if (outcome.kind === 'released' || outcome.attempt === undefined) return null;
  return JSON.stringify(outcome.attempt);
}

/** The stored texts of a message. The reason does not quote them, because they may be personal data. */
export function readContent(
  payload: unknown,
  headers: unknown,
): Pick<OutboxMessage, 'payload' | 'headers' | 'unreadable'> {
  const [read, readHeaders] = [objectOf(payload), objectOf(headers ?? '{}')];
  if (read !== undefined && readHeaders !== undefined) {
    return { payload: read, headers: (headers ?? null) === null ? undefined : readHeaders };
  }
  const damaged = read === undefined ? 'payload of the message is' : 'headers of the message are';
  const unreadable = `the stored ${damaged} not a JSON object`;
  return { payload: {}, headers: undefined, unreadable };
}

function objectOf(json: unknown): Readonly<Record<string, unknown>> | undefined {
  const value = parseStored(json);
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : undefined;
}

/** A message with the cause of its last stored attempt. A damaged record of an attempt is left out. */
export function withCause(message: OutboxMessage, attempt: string | undefined): OutboxMessage {
  const stored = objectOf(attempt) as DeliveryAttempt | undefined;
  return stored?.cause === undefined ? message : { ...message, cause: stored.cause };
}

/** The stored jobs of a message. Damaged records of jobs are left out. */
export function readJobs(json: string): readonly JobEntry[] {
  const entries = parseStored(json);
  return Array.isArray(entries) ? (entries.filter(Array.isArray) as unknown as JobEntry[]) : [];
}

/** When the message of an outcome is due again; null: unchanged, or never. */
export function dueMsOf(outcome: OutboxOutcome): number | null {
  if (outcome.kind === 'failed') return outcome.nextDueAt.getTime();
  return outcome.kind === 'released' ? (outcome.dueAt?.getTime() ?? null) : null;
}
