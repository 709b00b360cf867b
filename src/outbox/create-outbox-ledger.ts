// Everything that ledgers have in common: the edge, and the single forms over the batch forms. An engine
// brings the rest.

import { MillraceError } from '../foundation/error.ts';
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
import { outboxLimits as limits } from './outbox-limits.ts';
import type {
  ClaimRequest,
  Enqueued,
  OutboxCapabilities,
  OutboxFilter,
  OutboxLedger,
  OutboxOutcome,
  OutboxSource,
  PausedDestination,
  SettleOutcome,
} from './outbox-ledger.ts';
import type {
  ClaimedMessage,
  EnqueueOutboxProps,
  OutboxMessage,
  OutboxStatus,
} from './outbox-message.ts';

interface Exchanged {
  readonly settled: readonly SettleOutcome[];
  readonly claimed: readonly ClaimedMessage[];
}

/** What an adapter brings; everything that gets to it has been checked. */
export interface OutboxEngine<Transaction> extends AsyncDisposable {
  readonly capabilities: OutboxCapabilities;
  enqueue(rows: readonly OutboxRow[], transaction?: Transaction): Promise<readonly Enqueued[]>;
  exchange(
    outcomes: readonly OutboxOutcome[],
    claim: Required<ClaimRequest> | undefined,
  ): Promise<Exchanged>;
  whenDue(pollMs: number, signal: AbortSignal): Promise<void>;
  list(
    filter: OutboxFilter,
    page: { readonly limit: number; readonly after: string | undefined },
  ): Promise<readonly OutboxMessage[]>;
  bySource(sources: readonly OutboxSource[], limit: number): Promise<readonly OutboxMessage[]>;
  counts(): Promise<Readonly<Record<OutboxStatus, number>>>;
  replay(filter: OutboxFilter, limit: number): Promise<number>;
  purge(sentBeforeMs: number, limit: number): Promise<number>;
  pause(integrationType: string, by: string): Promise<boolean>;
  resume(integrationType: string): Promise<boolean>;
  paused(): Promise<readonly PausedDestination[]>;
}

export function createOutboxLedger<Transaction>(
  engine: OutboxEngine<Transaction>,
): OutboxLedger<Transaction> {
  const enqueueMany = async (
    items: readonly EnqueueOutboxProps[],
    transaction?: Transaction,
  ): Promise<readonly Enqueued[]> => {
    const rows = toOutboxRows(items);
    return rows.length === 0 ? [] : engine.enqueue(rows, transaction);
  };

  /** Of two outcomes of one claim, the first counts. */
  const exchangeOnce = async (
    outcomes: readonly OutboxOutcome[],
    claim: Required<ClaimRequest> | undefined,
  ): Promise<Exchanged> => {
    const byClaim = new Map<string, OutboxOutcome>();
    for (const outcome of outcomes) {
      const key = claimKey(outcome);
      if (!byClaim.has(key)) byClaim.set(key, checked(outcome));
    }
    const unique = [...byClaim.values()];
    const { settled, claimed } = await engine.exchange(unique, claim);
    const results = new Map(unique.map((each, at) => [claimKey(each), settled[at]]));
    return {
      claimed,
      settled: outcomes.map((outcome) => {
        const key = claimKey(outcome);
        const result = results.get(key) ?? 'stale';
        results.delete(key);
        return result;
      }),
    };
  };

  const settle = async (outcomes: readonly OutboxOutcome[]): Promise<readonly SettleOutcome[]> => {
    if (outcomes.length === 0) return [];
    return (await exchangeOnce(outcomes, undefined)).settled;
  };

  const settleOne = async (outcome: OutboxOutcome): Promise<SettleOutcome> => {
    const [result] = await settle([outcome]);
    return result ?? 'stale';
  };

  const exchange: OutboxLedger['exchange'] = async (outcomes, request) => {
    const claim = { leaseMs: limits.leaseMsDefault, ...request };
    checkClaim(claim.workerId, claim.limit, claim.leaseMs);
    return exchangeOnce(outcomes, claim);
  };

  return {
    capabilities: engine.capabilities,
    enqueueMany: (items) => enqueueMany(items),
    async enqueue(item) {
      const [enqueued] = await enqueueMany([item]);
      if (enqueued === undefined) throw new MillraceError('STORE_CORRUPT', 'the ledger gave no id');
      return enqueued;
    },
    async enqueueIn(transaction, items) {
      if (engine.capabilities.callerTransaction) return enqueueMany(items, transaction);
      throw new MillraceError(
        'NOT_SUPPORTED',
        'this ledger cannot enqueue in a transaction of the caller',
        { details: { capability: 'callerTransaction' } },
      );
    },
    async claimDueBatch(workerId, limit, options) {
      return (await exchange([], { ...options, workerId, limit })).claimed;
    },
    markSent: (claim) => settleOne({ kind: 'sent', claim }),
    markFailed: (claim, error, nextDueAt) => settleOne({ kind: 'failed', claim, error, nextDueAt }),
    deadLetter: (claim, error) => settleOne({ kind: 'dead', claim, error }),
    release: (claim, dueAt) => settleOne({ kind: 'released', claim, dueAt }),
    settle,
    exchange,
    whenDue: (pollMs, signal) => engine.whenDue(pollMs, signal),
    async find(id) {
      if (!isOutboxId(id)) return undefined;
      const [found] = await engine.list({ ids: [id] }, { limit: 1, after: undefined });
      return found;
    },
    async list(filter, page) {
      checkFilter(filter);
      return engine.list(filter, { limit: pageLimit(page), after: page?.after });
    },
    async bySource(sources, limit = limits.listMax) {
      const findable = findableSources(sources);
      return findable.length === 0 ? [] : engine.bySource(findable, pageLimit({ limit }));
    },
    counts: () => engine.counts(),
    async replay(filter, limit = Number.MAX_SAFE_INTEGER) {
      checkFilter(filter);
      // In small commits: a hundred thousand at once would hold up those who enqueue.
      let replayed = 0;
      while (replayed < limit) {
        const size = Math.min(limit - replayed, limits.purgeBatchDefault);
        const count = await engine.replay(filter, size);
        replayed += count;
        if (count < size) break;
      }
      return replayed;
    },
    purge: async (sentBefore, limit = limits.purgeBatchDefault) =>
      engine.purge(time('sentBefore', sentBefore), limit),
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

function claimKey({ claim: { id, token } }: OutboxOutcome): string {
  return `${id} ${token}`;
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
