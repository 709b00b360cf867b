import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideHealth, healthLimits, type HealthFigures } from './decide-health.ts';

const subscription = {
  state: 'started',
  paused: false,
  behind: 0,
  unit: 'events',
  lagSeconds: 0,
  deadLetters: 0,
  failing: [],
  parkedStreams: 0,
} as const;
const outbox = {
  pending: 0,
  failed: 0,
  claimed: 0,
  dead: 0,
  lateSeconds: 0,
  pausedDestinations: [],
};
const well: HealthFigures = {
  store: { reachable: true },
  subscriptions: { a: subscription },
  outbox,
  dispatcher: { state: 'started', inFlight: 0 },
};

const cases: readonly (readonly [string, 'up' | 'degraded' | 'down', Partial<HealthFigures>])[] = [
  ['everything works', 'up', {}],
  ['the process runs nothing', 'up', { subscriptions: {} }],
  ['the store is unreachable', 'down', { store: { reachable: false, error: 'ECONNREFUSED' } }],
  ['the outbox is unreachable', 'down', { outbox: { error: 'ECONNREFUSED' } }],
  ['a subscription does not respond', 'down', { subscriptions: { a: { error: 'away' } } }],
  [
    'a subscription has ended',
    'down',
    { subscriptions: { a: { ...subscription, state: 'stopped' } } },
  ],
  [
    'a subscription ends again and again',
    'down',
    { subscriptions: { a: { ...subscription, failing: ['no such position'] } } },
  ],
  ['the dispatcher stops', 'down', { dispatcher: { state: 'stopping', inFlight: 1 } }],
  [
    'a subscription is paused',
    'degraded',
    { subscriptions: { a: { ...subscription, paused: true, lagSeconds: 9_999 } } },
  ],
  [
    'a subscription lags',
    'degraded',
    { subscriptions: { a: { ...subscription, lagSeconds: 301 } } },
  ],
  [
    'there is a dead letter',
    'degraded',
    { subscriptions: { a: { ...subscription, deadLetters: 1 } } },
  ],
  [
    'too many messages are waiting',
    'degraded',
    { outbox: { ...outbox, pending: 6_000, failed: 4_001 } },
  ],
  ['a message is late', 'degraded', { outbox: { ...outbox, lateSeconds: 301 } }],
  ['a message is dead', 'degraded', { outbox: { ...outbox, dead: 1 } }],
  ['a destination is paused', 'degraded', { outbox: { ...outbox, pausedDestinations: ['sms:x'] } }],
];
for (const [what, status, figures] of cases) {
  test(`health is ${status} when ${what}`, () => {
    const health = decideHealth({ ...well, ...figures }, healthLimits);
    assert.equal(health.status, status);
    assert.equal(health.problems.length, status === 'up' ? 0 : 1, health.problems.join());
  });
}
