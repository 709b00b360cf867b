// Derives the health of an application from its figures. Down: it does not work. Degraded: it works, but needs attention.

import type { LifecycleState } from '../foundation/lifecycle.ts';
import type { SubscriptionLag } from '../subscriptions/subscription-admin.ts';

export interface HealthThresholds {
  /** Age of the oldest event that a subscription has not processed. */
  readonly lagSecondsMax: number;
  /** Number of pending dead letters of a subscription. */
  readonly deadLettersMax: number;
  /** Messages waiting to be sent. */
  readonly outboxPendingMax: number;
  /** How long a message has been due. */
  readonly outboxLateSecondsMax: number;
  readonly outboxDeadMax: number;
  /** An engine that does not respond within this time counts as unreachable. */
  readonly timeoutMs: number;
  /** The minimum interval between counts of rows, however often the check runs. */
  readonly countEveryMs: number;
}

export const healthLimits: HealthThresholds = {
  lagSecondsMax: 300,
  deadLettersMax: 0,
  outboxPendingMax: 10_000,
  outboxLateSecondsMax: 300,
  outboxDeadMax: 0,
  timeoutMs: 5_000,
  countEveryMs: 15_000,
};

export interface SubscriptionHealth {
  readonly state: LifecycleState;
  readonly paused: boolean;
  readonly behind: number;
  /** What `behind` counts. */
  readonly unit: SubscriptionLag['unit'];
  readonly lagSeconds: number;
  readonly deadLetters: number;
  /** Why shards of this process end again and again. */
  readonly failing: readonly string[];
  /** Aggregates parked by a dead letter or a retry, in the shards of this process. */
  readonly parkedStreams: number;
}

export interface OutboxHealth {
  readonly pending: number;
  readonly failed: number;
  readonly claimed: number;
  readonly dead: number;
  /** The delay of the oldest due message; 0 if none is due. */
  readonly lateSeconds: number;
  readonly pausedDestinations: readonly string[];
}

export interface HealthFigures {
  readonly store?: { readonly reachable: boolean; readonly error?: string } | undefined;
  readonly subscriptions: Readonly<Record<string, SubscriptionHealth | { readonly error: string }>>;
  readonly outbox?: OutboxHealth | { readonly error: string } | undefined;
  readonly dispatcher?: SenderHealth | undefined;
  /** The worker of the queues. */
  readonly worker?: SenderHealth | undefined;
}

export interface SenderHealth {
  readonly state: LifecycleState;
  /** Messages that are being sent. */
  readonly inFlight: number;
}

export interface MillraceHealth extends HealthFigures {
  readonly status: 'up' | 'degraded' | 'down';
  /** The reasons as sentences; empty if the status is `up`. */
  readonly problems: readonly string[];
}

export function decideHealth(figures: HealthFigures, limits: HealthThresholds): MillraceHealth {
  const down: string[] = [];
  const degraded: string[] = [];
  const { store, subscriptions, outbox, dispatcher, worker } = figures;
  const checkMax = (what: string, value: number, max: number): void => {
    if (value > max) degraded.push(`${what}: ${value}, maximum ${max}`);
  };
  if (store?.reachable === false) down.push(`the store does not respond: ${store.error ?? ''}`);
  for (const [name, each] of Object.entries(subscriptions)) {
    if ('error' in each) {
      down.push(`${name} does not respond: ${each.error}`);
      continue;
    }
    if (each.state !== 'started') down.push(`${name} is ${each.state}`);
    for (const reason of each.failing) down.push(`${name} fails repeatedly: ${reason}`);
    if (each.paused) degraded.push(`${name} is paused`);
    else checkMax(`${name}: lag in seconds`, Math.round(each.lagSeconds), limits.lagSecondsMax);
    checkMax(`${name}: dead letters`, each.deadLetters, limits.deadLettersMax);
  }
  if (outbox !== undefined && 'error' in outbox) {
    down.push(`the outbox does not respond: ${outbox.error}`);
  } else if (outbox !== undefined) {
    checkMax('outbox: waiting messages', outbox.pending + outbox.failed, limits.outboxPendingMax);
    checkMax('outbox: dead messages', outbox.dead, limits.outboxDeadMax);
    checkMax('outbox: delay in seconds', outbox.lateSeconds, limits.outboxLateSecondsMax);
    for (const type of outbox.pausedDestinations) degraded.push(`${type} is paused`);
  }
  for (const [name, sender] of Object.entries({ dispatcher, worker })) {
    if (sender !== undefined && sender.state !== 'started')
      down.push(`the ${name} is ${sender.state}`);
  }
  const status = down.length > 0 ? 'down' : degraded.length > 0 ? 'degraded' : 'up';
  return { status, problems: [...down, ...degraded], ...figures };
}
