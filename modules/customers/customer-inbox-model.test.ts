// Random commands with skewed clocks, and only the wake-ups that the inbox itself sets: no notification is lost,
// delivered twice, or delivered during quiet hours.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CommandRejected } from 'millrace/aggregates';
import type { EventDefinition } from 'millrace/contracts';
import {
  acknowledgeNotification,
  configureCustomer,
  digestAdded,
  digestClosed,
  digestOpened,
  inboxAcknowledged,
  inboxDelivered,
  inboxMerged,
  inboxReminded,
  inboxSuppressed,
  notifyCustomer,
  wakeInbox,
  type InboxEvent,
} from './customer-events.ts';
import { customerInbox } from './customer-inbox.ts';
import { channels, type Category, type Preferences } from './customer-schemas.ts';
import { applyInbox, preferenceFor, type InboxState } from './customer-state.ts';
import { quietUntil } from './quiet-hours.ts';
import { propertyRuns } from './testing/property-runs.ts';

type InboxCommand = Parameters<typeof customerInbox.decide>[0];

const minuteMs = 60_000;
const startMs = Date.parse('2026-10-24T18:00:00.000Z');
const category = fc.constantFrom('alert' as const, 'info' as const);
const preference = fc.record(
  {
    enabled: fc.boolean(),
    channels: fc.subarray([...channels]),
    breaksQuiet: fc.boolean(),
    digestMs: fc.constantFrom(10 * minuteMs, 60 * minuteMs),
  },
  { requiredKeys: ['enabled', 'channels', 'breaksQuiet'] },
);
const preferences: fc.Arbitrary<Preferences> = fc.record({
  timeZone: fc.constantFrom('Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu', 'UTC'),
  quietHours: fc.subarray([
    { from: '22:00', to: '07:00' },
    { from: '12:00', to: '14:00' },
    { from: '02:30', to: '02:45' },
  ]),
  categories: fc.record(
    { alert: preference, info: preference, digest: preference },
    { requiredKeys: [] },
  ),
});
const nag = fc.record(
  {
    everyMs: fc.constantFrom(minuteMs, 30 * minuteMs),
    times: fc.integer({ min: 2, max: 4 }),
    escalate: fc.record({ after: fc.constantFrom(1, 2), to: fc.constant('boss') }),
  },
  { requiredKeys: ['everyMs', 'times'] },
);
const message = fc.record(
  {
    category,
    key: fc.constantFrom('disk', 'cpu'),
    mergeMs: fc.constantFrom(minuteMs, 90 * minuteMs),
    digest: fc.record({
      key: fc.constantFrom('sales', 'ops'),
      windowMs: fc.constantFrom(10 * minuteMs, 45 * minuteMs),
    }),
    nag,
  },
  { requiredKeys: ['category'] },
);
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('notify' as const), message }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('configure' as const), preferences }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('acknowledge' as const), which: fc.nat(20) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('wake' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      minutes: fc.integer({ min: 0, max: 240 }),
    }),
  },
);

interface HistoryEntry {
  readonly event: InboxEvent;
  readonly nowMs: number;
  readonly before: InboxState;
}

test('an inbox delivers every notification once, in its window, and none during quiet hours', () => {
  const plan = fc.array(fc.tuple(step, fc.integer({ min: -3_000, max: 3_000 })), { maxLength: 40 });
  fc.assert(
    fc.property(plan, (steps) => {
      const history: HistoryEntry[] = [];
      let state = customerInbox.initial;
      let nowMs = startMs;
      let sent = 0;
      const ask = (command: InboxCommand, clockMs: number): void => {
        let events: readonly InboxEvent[];
        try {
          const context = { ...fixed, nowMs: clockMs };
          events = customerInbox.decide(command, state, context);
        } catch (error) {
          if (error instanceof CommandRejected) return;
          throw error;
        }
        for (const event of events) {
          history.push({ event, nowMs: Math.max(clockMs, state.clockMs), before: state });
          state = applyInbox(state, event);
        }
      };
      /** Runs the wake-ups that are due, some seconds early if the clock is skewed. */
      const tick = (untilMs: number, skewMs: number): void => {
        for (let guard = 0; guard < 2_000; guard += 1) {
          const { no, atMs } = state.wake;
          if (atMs === undefined || no === woken || atMs > untilMs) return;
          woken = no;
          nowMs = Math.max(nowMs, atMs);
          ask(wakeInbox({ no }), nowMs + Math.min(0, skewMs));
        }
        assert.fail('the wake-up is set in an endless loop');
      };
      let woken = 0;
      for (const [each, skewMs] of steps) {
        if (each.kind === 'pass') {
          const untilMs = nowMs + each.minutes * minuteMs;
          tick(untilMs, skewMs);
          nowMs = untilMs;
        } else {
          ask(
            commandOf(each, () => (sent += 1)),
            nowMs + skewMs,
          );
        }
      }
      tick(nowMs + 30 * 86_400_000, 0);
      check(history, state, sent);
    }),
    { numRuns: propertyRuns(300) },
  );
});

const fixed = {
  tenant: 'core',
  id: 'cust_1',
  revision: 0,
  commandId: 'c',
  correlationId: 'c',
  nextId: () => 'id',
};

type Step = Exclude<typeof step extends fc.Arbitrary<infer Each> ? Each : never, { kind: 'pass' }>;

function commandOf(each: Step, next: () => number): InboxCommand {
  switch (each.kind) {
    case 'notify':
      return notifyCustomer({ notificationId: `n-${next()}`, title: 'Hello', ...each.message });
    case 'configure':
      return configureCustomer({ preferences: each.preferences });
    case 'acknowledge':
      return acknowledgeNotification({ notificationId: `n-${each.which}`, by: 'ada' });
    case 'wake':
      return wakeInbox({ no: 1 });
    default:
      return each satisfies never;
  }
}

function check(history: readonly HistoryEntry[], state: InboxState, sent: number): void {
  const of = <Payload extends object>(definition: EventDefinition<string, Payload, Payload>) =>
    history.flatMap(({ event, ...more }) =>
      definition.is(event) ? [{ ...more, ...event.payload }] : [],
    );
  assert.deepEqual([state.held, state.digests, state.nags], [[], {}, {}], 'work is left over');

  // Each message has exactly one outcome.
  const first = [
    ...of(inboxDelivered).map(({ notice }) => notice.notificationId),
    ...of(inboxSuppressed).map(({ notice }) => notice.notificationId),
    ...of(inboxMerged).map(({ mergedId }) => mergedId),
    ...of(digestAdded).map(({ notificationId }) => notificationId),
    // Acknowledged while it was held.
    ...of(inboxAcknowledged)
      .filter(({ before, notificationId }) =>
        before.held.some((each) => each.notificationId === notificationId),
      )
      .map(({ notificationId }) => notificationId),
  ].filter((id) => id.startsWith('n-'));
  assert.equal(new Set(first).size, first.length, 'a notification was delivered twice');
  assert.equal(first.length, sent, 'a notification is lost');

  for (const { notice, before, nowMs } of of(inboxDelivered)) {
    assert.ok(isAllowed(before, notice.category, nowMs), 'delivered during quiet hours');
  }
  const steps = new Map<string, number>();
  const acknowledged = new Map(of(inboxAcknowledged).map((each) => [each.notificationId, each.at]));
  for (const { notice, step: count, before, nowMs, at } of of(inboxReminded)) {
    assert.ok(isAllowed(before, notice.category, nowMs), 'delivered during quiet hours');
    assert.equal(count, (steps.get(notice.notificationId) ?? 0) + 1, 'a reminder is missing');
    assert.ok(
      at <= (acknowledged.get(notice.notificationId) ?? at),
      'reminder after the acknowledgement',
    );
    steps.set(notice.notificationId, count);
  }

  // Each window has one digest with exactly the messages of that window.
  const opened = of(digestOpened);
  const closed = of(digestClosed);
  assert.equal(new Set(opened.map(({ digestId }) => digestId)).size, opened.length);
  assert.deepEqual(
    closed.map(({ digestId }) => digestId).toSorted(),
    opened.map(({ digestId }) => digestId).toSorted(),
  );
  for (const { digestId, from, to } of opened) {
    const items = of(digestAdded).filter((each) => each.digestId === digestId);
    assert.ok(items.every(({ at }) => from <= at && at < to));
    const end = closed.find((each) => each.digestId === digestId);
    assert.equal(end?.count, items.length);
    assert.ok((end?.at ?? '') >= to);
  }
  const times = history.map(({ event }) => event.payload.at);
  assert.deepEqual(times, times.toSorted(), 'times decrease');
}

function isAllowed({ preferences: given }: InboxState, of: Category, nowMs: number): boolean {
  const { timeZone, quietHours: windows } = given;
  return (
    preferenceFor(given, of).breaksQuiet || quietUntil({ timeZone, windows }, nowMs) === undefined
  );
}
