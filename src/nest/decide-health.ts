// What figures say about the health of an application. Down: it does not do its work. Degraded: it does, and
// somebody should look.

import type { LifecycleState } from '../foundation/lifecycle.ts';

export interface HealthThresholds {
  /** Age of the oldest event that a subscription has not done. */
  readonly lagSecondsMax: number;
  /** Pending dead letters of a subscription. */
  readonly deadLettersMax: number;
  /** Messages that wait to be sent. */
  readonly outboxPendingMax: number;
  /** How long a message is due already. */
  readonly outboxLateSecondsMax: number;
  readonly outboxDeadMax: number;
  /** What does not answer within this is taken for away. */
  readonly timeoutMs: number;
  /** Rows are counted so often at most, however often somebody asks. */
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
  readonly lagSeconds: number;
  readonly deadLetters: number;
  /** Aggregates whose events wait behind a dead letter or for a retry, in the shards of this process. */
  readonly held: number;
}

export interface OutboxHealth {
  readonly pending: number;
  readonly failed: number;
  readonly claimed: number;
  readonly dead: number;
  /** Of the oldest message that is due; 0 when none is. */
  readonly lateSeconds: number;
  readonly pausedDestinations: readonly string[];
}

export interface HealthFigures {
  readonly store?: { readonly reachable: boolean; readonly error?: string };
  readonly subscriptions: Readonly<Record<string, SubscriptionHealth | { readonly error: string }>>;
  readonly outbox?: OutboxHealth | { readonly error: string };
  readonly dispatcher?: { readonly state: LifecycleState; readonly inFlight: number };
}

export interface MillraceHealth extends HealthFigures {
  readonly status: 'up' | 'degraded' | 'down';
  /** Sentences; none when it is up. */
  readonly problems: readonly string[];
}

export function decideHealth(figures: HealthFigures, limits: HealthThresholds): MillraceHealth {
  const down: string[] = [];
  const degraded: string[] = [];
  const { store, subscriptions, outbox, dispatcher } = figures;
  const above = (what: string, value: number, max: number): void => {
    if (value > max) degraded.push(`${what}: ${value}, more than ${max}`);
  };
  if (store?.reachable === false) down.push(`the store does not answer: ${store.error ?? ''}`);
  for (const [name, each] of Object.entries(subscriptions)) {
    if ('error' in each) {
      down.push(`${name} cannot be asked: ${each.error}`);
      continue;
    }
    if (each.state !== 'started') down.push(`${name} is ${each.state}`);
    if (each.paused) degraded.push(`${name} is paused`);
    else above(`${name} is behind, in seconds`, Math.round(each.lagSeconds), limits.lagSecondsMax);
    above(`dead letters of ${name}`, each.deadLetters, limits.deadLettersMax);
  }
  if (outbox !== undefined && 'error' in outbox) {
    down.push(`the outbox does not answer: ${outbox.error}`);
  } else if (outbox !== undefined) {
    above('messages that wait', outbox.pending + outbox.failed, limits.outboxPendingMax);
    above('dead messages', outbox.dead, limits.outboxDeadMax);
    above('messages are late, in seconds', outbox.lateSeconds, limits.outboxLateSecondsMax);
    for (const type of outbox.pausedDestinations) degraded.push(`${type} is paused`);
  }
  if (dispatcher !== undefined && dispatcher.state !== 'started') {
    down.push(`the dispatcher is ${dispatcher.state}`);
  }
  const status = down.length > 0 ? 'down' : degraded.length > 0 ? 'degraded' : 'up';
  return { status, problems: [...down, ...degraded], ...figures };
}
