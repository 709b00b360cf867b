// Collects the health of the store, subscriptions and outbox, in the format of Terminus, but without depending on it.

import { Inject, Injectable } from '@nestjs/common';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { withinTime } from '../foundation/async/within-time.ts';
import type { OutboxDispatcher } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { QueueDispatcher } from '../outbox/queue-dispatcher.ts';
import type { QueueWorker } from '../outbox/queue-worker.ts';
import type { SubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import {
  decideHealth,
  healthLimits,
  type HealthFigures,
  type HealthThresholds,
  type MillraceHealth,
  type OutboxHealth,
  type SenderHealth,
  type SubscriptionHealth,
} from './decide-health.ts';
import { MillraceRuntime } from './millrace-runtime.ts';

/** How many of the oldest messages are searched for the most overdue one. */
const oldestLimit = 100;

/**
 * Reports whether the store responds, the subscriptions keep up and the outbox drains. The module option `health` sets
 * the thresholds.
 *
 * @example
 * import { Controller, Get } from '@nestjs/common';
 * import { HealthCheck, HealthCheckService } from '@nestjs/terminus';
 * import { MillraceHealthIndicator } from 'millrace/nest';
 *
 * @Controller('health')
 * export class HealthController {
 *   constructor(
 *     private readonly health: HealthCheckService,
 *     private readonly millrace: MillraceHealthIndicator,
 *   ) {}
 *
 *   @Get()
 *   @HealthCheck()
 *   check() {
 *     return this.health.check([() => this.millrace.isHealthy('millrace')]);
 *   }
 * }
 */
export class MillraceHealthIndicator {
  readonly #runtime: MillraceRuntime;
  readonly #limits: HealthThresholds;
  readonly #clock: Clock;
  #counted: { readonly atMs: number; readonly outbox: Promise<OutboxHealth> } | undefined;

  constructor(runtime: MillraceRuntime, clock: Clock = systemClock) {
    this.#runtime = runtime;
    this.#limits = { ...healthLimits, ...runtime.options.health };
    this.#clock = clock;
  }

  /** The check for Terminus: `health.check([() => millrace.isHealthy('millrace')])`. */
  async isHealthy<const Key extends string>(key: Key): Promise<Record<Key, MillraceHealth>> {
    return { [key]: await this.check() } as Record<Key, MillraceHealth>;
  }

  /** The check without Terminus; never rejects. */
  async check(): Promise<MillraceHealth> {
    const { store, ledger, dispatcher, worker, runners } = this.#runtime;
    const isRunning = this.#runtime.options.run !== false;
    const [reachable, subscriptions, outbox] = await Promise.all([
      store && this.#within(() => store.head()).then(reachableResult, unreachable),
      Promise.all([...runners].map(([name, each]) => this.#subscription(name, each))),
      ledger && this.#within(() => this.#outbox(ledger)).catch(toFailure),
    ]);
    const figures: HealthFigures = {
      ...(reachable && { store: reachable }),
      subscriptions: Object.fromEntries(subscriptions),
      ...(outbox && { outbox }),
      ...(isRunning && dispatcher && { dispatcher: senderHealth(dispatcher) }),
      ...(isRunning && worker && { worker: senderHealth(worker) }),
    };
    return decideHealth(figures, this.#limits);
  }

  async #subscription(
    name: string,
    runner: SubscriptionRunner,
  ): Promise<[string, SubscriptionHealth | { readonly error: string }]> {
    const { subscriptions } = this.#runtime;
    try {
      const [{ behind, unit, seconds }, deadLetters = 0] = await this.#within(() =>
        Promise.all([
          runner.lag(),
          subscriptions?.deadLetters.count({ handler: name, status: 'pending' }),
        ]),
      );
      const { paused, shards, failing: failures } = runner.status;
      const failing = failures.map(({ reason }) => reason);
      const parkedStreams = shards.reduce((sum, shard) => sum + shard.parkedStreams, 0);
      const { state } = runner;
      return [
        name,
        { state, paused, behind, unit, lagSeconds: seconds, deadLetters, failing, parkedStreams },
      ];
    } catch (error) {
      return [name, toFailure(error)];
    }
  }

  /** Concurrent checks share one count, which is cached for `countEveryMs`. */
  #outbox(ledger: OutboxLedger): Promise<OutboxHealth> {
    const nowMs = this.#clock.now();
    if (this.#counted === undefined || nowMs - this.#counted.atMs >= this.#limits.countEveryMs) {
      const outbox = this.#count(ledger);
      this.#counted = { atMs: nowMs, outbox };
      outbox.catch(() => {
        if (this.#counted?.outbox === outbox) this.#counted = undefined;
      });
    }
    return this.#counted.outbox;
  }

  async #count(ledger: OutboxLedger): Promise<OutboxHealth> {
    const page = { limit: oldestLimit, oldestFirst: true };
    const [counts, pending, failed, paused] = await Promise.all([
      ledger.counts(),
      ledger.list({ status: 'PENDING' }, page),
      ledger.list({ status: 'FAILED' }, page),
      ledger.paused(),
    ]);
    const pausedDestinations = paused.map(({ integrationType }) => integrationType);
    // Messages of a paused destination are not late.
    const dueMs = [...pending, ...failed]
      .filter(({ integrationType }) => !pausedDestinations.includes(integrationType))
      .map(({ dueAt }) => dueAt.getTime());
    const lateMs = Math.max(0, this.#clock.now() - Math.min(...dueMs));
    return {
      pending: counts.PENDING,
      failed: counts.FAILED,
      claimed: counts.CLAIMED,
      dead: counts.DEAD,
      lateSeconds: Number.isFinite(lateMs) ? Math.floor(lateMs / 1_000) : 0,
      pausedDestinations,
    };
  }

  #within<T>(work: () => Promise<T>): Promise<T> {
    const { timeoutMs: ms } = this.#limits;
    const late = (): never => {
      throw new MillraceError('WAIT_TIMEOUT', `no response within ${ms} ms`);
    };
    return withinTime(work(), { ms, late, clock: this.#clock });
  }
}

Injectable()(MillraceHealthIndicator);
Inject(MillraceRuntime)(MillraceHealthIndicator, undefined, 0);

const reachableResult = (): { readonly reachable: boolean } => ({ reachable: true });

const unreachable = (error: unknown): { readonly reachable: boolean; readonly error: string } => ({
  reachable: false,
  ...toFailure(error),
});

/** A queue dispatcher sends nothing itself. */
function senderHealth(sender: OutboxDispatcher | QueueDispatcher | QueueWorker): SenderHealth {
  return { state: sender.state, inFlight: 'inFlight' in sender ? sender.inFlight : 0 };
}

function toFailure(error: unknown): { readonly error: string } {
  return { error: error instanceof Error ? error.message : String(error) };
}
