// The options that the dispatcher, the queue dispatcher and the queue worker have in common, with their defaults.

import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import type { Deliver } from './attempt-delivery.ts';
import type { RetrySchedule } from './decide-delivery.ts';
import { outboxLimits as limits } from './outbox-limits.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import type { OnDead } from './report-outcome.ts';

export interface LeasingOptions {
  readonly ledger: OutboxLedger;
  /** How long a claim lasts without a renewal: if its process dies, another one claims the message. Default: 15 s. */
  readonly leaseMs?: number | undefined;
  /** Default: a new one at every start. */
  readonly workerId?: string | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

export interface ClaimingOptions extends LeasingOptions {
  /** The most messages of one claim. Default: 100. */
  readonly batchSize?: number | undefined;
  /** The poll interval in case a notification is lost. Default: 1 s. */
  readonly tickIntervalMs?: number | undefined;
}

export interface SendingOptions extends LeasingOptions {
  readonly deliver: Deliver;
  /** Messages sent at the same time; of a queue worker: per queue. Default: 50. */
  readonly concurrency?: number | undefined;
  /** Time limit of one attempt, unless `deliver` sets a shorter one. Default: 30 s. */
  readonly timeoutMs?: number | undefined;
  /** How long a stop waits for running attempts before it cancels them. Default: 10 s. */
  readonly drainMs?: number | undefined;
  /** Default: min(60 s · 2^(n−1), 15 min) + 0..10 s. */
  readonly schedule?: RetrySchedule | undefined;
  readonly onDead?: OnDead | undefined;
}

/** Delays between calls while the ledger or the queue is unavailable. */
export const outageMs = { first: 100, max: 5_000 } as const;

function leasingSettings(options: LeasingOptions) {
  return {
    ledger: options.ledger,
    clock: options.clock ?? systemClock,
    leaseMs: options.leaseMs ?? limits.leaseMsDefault,
    workerId: options.workerId ?? `outbox-${process.pid}-${randomUUID().slice(0, 8)}`,
    observer: safeObserver(options.observer ?? silentObserver),
  };
}

export function claimingSettings(options: ClaimingOptions) {
  return {
    ...leasingSettings(options),
    batchSize: options.batchSize ?? limits.claimBatchDefault,
    tickIntervalMs: options.tickIntervalMs ?? limits.tickIntervalMsDefault,
  };
}

export function sendingSettings(options: SendingOptions) {
  return {
    ...leasingSettings(options),
    deliver: options.deliver,
    schedule: options.schedule,
    onDead: options.onDead,
    concurrency: options.concurrency ?? limits.concurrencyDefault,
    timeoutMs: options.timeoutMs ?? limits.timeoutMsDefault,
    drainMs: options.drainMs ?? limits.drainMsDefault,
  };
}
