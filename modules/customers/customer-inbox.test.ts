import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NewEvent } from 'millrace/contracts';
import { idFromKey } from 'millrace/foundation';
import { given } from 'millrace/testing';
import {
  acknowledgeNotification,
  configureCustomer,
  digestAdded,
  digestClosed,
  digestOpened,
  inboxAcknowledged,
  inboxConfigured,
  inboxDelivered,
  inboxEscalated,
  inboxHeld,
  inboxMerged,
  inboxOpened,
  inboxReminded,
  inboxSuppressed,
  notifyCustomer,
  wakeInbox,
  wakeSet,
  type InboxEvent,
} from './customer-events.ts';
import { customerInbox } from './customer-inbox.ts';
import { customerLimits } from './customer-limits.ts';
import type { CustomerMessage, Preferences } from './customer-schemas.ts';
import { applyInbox, initialInbox } from './customer-state.ts';
import { digestWindowAt } from './digest-window.ts';

const at = '2026-01-10T12:00:00.000Z';
const nowMs = Date.parse(at);
const night = Date.parse('2026-01-10T22:30:00.000Z');
const morning = '2026-01-11T06:00:00.000Z';
const context = { id: 'cust_1', tenant: 'core', nowMs };
const opened = inboxOpened({ at });

const message = (more: Partial<CustomerMessage> = {}) =>
  notifyCustomer({ notificationId: 'n-1', category: 'info', title: 'Hello', ...more });
const notice = (more: object = {}) => ({
  notificationId: 'n-1',
  category: 'info' as const,
  title: 'Hello',
  count: 1,
  ...more,
});
const delivered = (more: object = {}, when = at) =>
  inboxDelivered({ at: when, notice: notice(more), channels: ['socket'] });
const time = (ms: number): string => new Date(ms).toISOString();

/** For histories that are too long for `given`. */
function givenState(
  before: readonly InboxEvent[],
  command: ReturnType<typeof notifyCustomer>,
  atMs: number,
): { readonly events: readonly InboxEvent[] } {
  const state = before.reduce(applyInbox, initialInbox);
  const known = { ...context, nowMs: atMs, revision: 0, commandId: 'c', correlationId: 'c' };
  return { events: customerInbox.decide(command, state, { ...known, nextId: () => 'id' }) };
}

const preferences: Preferences = {
  timeZone: 'Europe/Berlin',
  quietHours: [{ from: '22:00', to: '07:00' }],
  categories: {},
};
const configured = (more: Partial<Preferences> = {}) =>
  inboxConfigured({ at, preferences: { ...preferences, ...more } });
const on = { enabled: true, channels: ['socket' as const], breaksQuiet: false };

test('the first notification opens the inbox and is delivered by the channel `socket`', () => {
  given(customerInbox, []).when(message(), context).then([opened, delivered()]);
});

test('a second notification with the same id has no effect', () => {
  given(customerInbox, [opened, delivered()]).when(message(), context).then([]);
});

test('a customer id that is not a subject token is rejected', () => {
  given(customerInbox, [])
    .when(message(), { ...context, id: 'a.b' })
    .thenRejected('customer-id-invalid');
});

test('a notification of a disabled category is suppressed', () => {
  const off = configured({ categories: { info: { ...on, enabled: false } } });
  given(customerInbox, [opened, off])
    .when(message(), context)
    .then([inboxSuppressed({ at, notice: notice() })]);
});

test('a notification uses the channels of its category', () => {
  const channels = ['email' as const, 'webhook' as const];
  given(customerInbox, [opened, configured({ categories: { alert: { ...on, channels } } })])
    .when(message({ category: 'alert' }), context)
    .then([inboxDelivered({ at, notice: notice({ category: 'alert' }), channels })]);
});

const heldEvents = [
  inboxHeld({ at: time(night), notice: notice(), until: morning }),
  wakeSet({ at: time(night), no: 1, wakeAt: morning }),
];

test('during quiet hours a notification is held, and a wake-up is set', () => {
  given(customerInbox, [opened, configured()])
    .when(message(), { ...context, nowMs: night })
    .then(heldEvents)
    .thenState(({ held, wake }) => held.length === 1 && wake.atMs === Date.parse(morning));
});

test('a second held notification sets no second wake-up', () => {
  given(customerInbox, [opened, configured(), ...heldEvents])
    .when(message({ notificationId: 'n-2' }), { ...context, nowMs: night + 1_000 })
    .then([
      inboxHeld({
        at: time(night + 1_000),
        notice: notice({ notificationId: 'n-2' }),
        until: morning,
      }),
    ]);
});

test('a held notification is delivered at the end of the quiet hours', () => {
  given(customerInbox, [opened, configured(), ...heldEvents])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: Date.parse(morning) })
    .then([delivered({}, morning)])
    .thenState(({ held }) => held.length === 0);
});

test('an early wake-up sets a later wake-up', () => {
  const early = Date.parse(morning) - 100;
  given(customerInbox, [opened, configured(), ...heldEvents])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: early })
    .then([wakeSet({ at: time(early), no: 2, wakeAt: time(Date.parse(morning) + 1_000) })]);
});

test('a wake-up without due work has no effect', () => {
  given(customerInbox, [])
    .when(wakeInbox({ no: 1 }), context)
    .then([]);
  given(customerInbox, [opened, delivered()])
    .when(wakeInbox({ no: 1 }), context)
    .then([]);
});

test('a category with `breaksQuiet` is delivered during quiet hours', () => {
  const through = configured({ categories: { alert: { ...on, breaksQuiet: true } } });
  given(customerInbox, [opened, through])
    .when(message({ category: 'alert' }), { ...context, nowMs: night })
    .then([delivered({ category: 'alert' }, time(night))]);
});

test('removing the quiet hours delivers held notifications at once', () => {
  const none = { ...preferences, quietHours: [] };
  given(customerInbox, [opened, configured(), ...heldEvents])
    .when(configureCustomer({ preferences: none }), { ...context, nowMs: night + 5 })
    .then([
      inboxConfigured({ at: time(night + 5), preferences: none }),
      delivered({}, time(night + 5)),
    ]);
});

test('a held notification is suppressed if its category was disabled', () => {
  const off = configured({ categories: { info: { ...on, enabled: false } } });
  given(customerInbox, [opened, configured(), ...heldEvents, off])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: Date.parse(morning) })
    .then([inboxSuppressed({ at: morning, notice: notice() })])
    .thenState(({ held }) => held.length === 0);
});

test('invalid preferences are rejected', () => {
  const rejects = (more: Partial<Preferences>, reason: string): void =>
    given(customerInbox, [])
      .when(configureCustomer({ preferences: { ...preferences, ...more } }), context)
      .thenRejected(reason);
  rejects({ timeZone: 'Mars/Olympus' }, 'time-zone-unknown');
  rejects({ quietHours: [{ from: '00:00', to: '00:00' }] }, 'quiet-hours-endless');
});

test('a full inbox rejects further held notifications', () => {
  const full = Array.from({ length: customerLimits.heldMax }, (_, index) =>
    inboxHeld({
      at: time(night),
      notice: notice({ notificationId: `h-${index}` }),
      until: morning,
    }),
  );
  given(customerInbox, [opened, configured(), ...full])
    .when(message(), { ...context, nowMs: night })
    .thenRejected('inbox-full');
});

test('notifications with the same key within the window are merged and counted', () => {
  const first = delivered({ key: 'disk' });
  const merged = (mergedId: string, count: number, ms: number) =>
    inboxMerged({ at: time(ms), notificationId: 'n-1', mergedId, count });
  const endMs = nowMs + customerLimits.mergeMsDefault;
  const second = message({ notificationId: 'n-2', key: 'disk' });
  given(customerInbox, [opened, first])
    .when(second, { ...context, nowMs: endMs - 1 })
    .then([merged('n-2', 2, endMs - 1)]);
  given(customerInbox, [opened, first, merged('n-2', 2, nowMs)])
    .when(message({ notificationId: 'n-3', key: 'disk' }), context)
    .then([merged('n-3', 3, nowMs)]);
  given(customerInbox, [opened, first])
    .when(second, { ...context, nowMs: endMs })
    .then([delivered({ notificationId: 'n-2', key: 'disk' }, time(endMs))]);
});

test('a category with `breaksQuiet` is delivered even if the inbox is full', () => {
  const full = Array.from({ length: customerLimits.heldMax }, (_, index) =>
    inboxHeld({
      at: time(night),
      notice: notice({ notificationId: `h-${index}` }),
      until: morning,
    }),
  );
  const loud = configured({ categories: { alert: { ...on, breaksQuiet: true } } });
  const set = wakeSet({ at: time(night), no: 1, wakeAt: morning });
  given(customerInbox, [opened, loud, ...full, set])
    .when(message({ category: 'alert' }), { ...context, nowMs: night })
    .then([delivered({ category: 'alert' }, time(night))]);
});

test('notifications of different categories are not merged', () => {
  given(customerInbox, [opened, delivered({ key: 'disk' })])
    .when(message({ notificationId: 'n-2', category: 'alert', key: 'disk' }), context)
    .then([delivered({ notificationId: 'n-2', category: 'alert', key: 'disk' })]);
});

test('a notification with reminders is not merged into one without', () => {
  const often = { everyMs: 60_000, times: 2 };
  const second = message({ notificationId: 'n-2', key: 'disk', nag: often });
  const merged = inboxMerged({ at, notificationId: 'n-1', mergedId: 'n-2', count: 2 });
  given(customerInbox, [opened, delivered({ key: 'disk' })])
    .when(second, context)
    .then([
      delivered({ notificationId: 'n-2', key: 'disk', nag: often }),
      wakeSet({ at, no: 1, wakeAt: time(nowMs + 60_000) }),
    ]);
  const set = wakeSet({ at, no: 1, wakeAt: time(nowMs + 60_000) });
  given(customerInbox, [opened, delivered({ key: 'disk', nag: often }), set])
    .when(second, context)
    .then([merged]);
  const done = inboxAcknowledged({ at, notificationId: 'n-1', by: 'ada' });
  given(customerInbox, [opened, delivered({ key: 'disk' }), done])
    .when(second, context)
    .then([merged]);
});

test('a reminder has the current count', () => {
  const often = { everyMs: 60_000, times: 1 };
  const merged = inboxMerged({ at, notificationId: 'n-1', mergedId: 'n-2', count: 2 });
  const set = wakeSet({ at, no: 1, wakeAt: time(nowMs + 60_000) });
  given(customerInbox, [opened, delivered({ key: 'disk', nag: often }), set, merged])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: nowMs + 60_000 })
    .then([
      inboxReminded({
        at: time(nowMs + 60_000),
        notice: notice({ key: 'disk', nag: often, count: 2 }),
        step: 1,
        channels: ['socket'],
        nextAt: null,
      }),
    ]);
});

test('acknowledging a merged notification acknowledges the one it was merged into', () => {
  const merged = inboxMerged({ at, notificationId: 'n-1', mergedId: 'n-2', count: 2 });
  given(customerInbox, [opened, delivered({ key: 'disk' }), merged])
    .when(acknowledgeNotification({ notificationId: 'n-2', by: 'ada' }), context)
    .then([inboxAcknowledged({ at, notificationId: 'n-1', by: 'ada' })]);
});

test('a notification that the inbox no longer remembers can be acknowledged from the list', () => {
  const origin = { customerId: 'boss', notificationId: 'n-0' };
  given(customerInbox, [opened])
    .when(
      acknowledgeNotification({ notificationId: 'old', by: 'ada', listed: { origin } }),
      context,
    )
    .then([inboxAcknowledged({ at, notificationId: 'old', by: 'ada', origin })]);
});

test('a key may be any string', () => {
  for (const key of ['__proto__', 'constructor', '7', 'toString']) {
    given(customerInbox, [opened, delivered({ key })])
      .when(message({ notificationId: 'n-2', key }), context)
      .then([inboxMerged({ at, notificationId: 'n-1', mergedId: 'n-2', count: 2 })]);
    given(customerInbox, [opened])
      .when(message({ key }), context)
      .then([delivered({ key })]);
  }
});

test('a held notification is delivered with its current count', () => {
  const held = inboxHeld({ at: time(night), notice: notice({ key: 'disk' }), until: morning });
  const later = night + 3_600_000;
  const merged = inboxMerged({ at: time(later), notificationId: 'n-1', mergedId: 'n-2', count: 2 });
  given(customerInbox, [opened, configured(), held])
    .when(message({ notificationId: 'n-2', key: 'disk' }), { ...context, nowMs: later })
    .then([merged, wakeSet({ at: time(later), no: 1, wakeAt: morning })]);
  given(customerInbox, [opened, configured(), held, merged])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: Date.parse(morning) })
    .then([delivered({ key: 'disk', count: 2 }, morning)]);
});

const hour = 3_600_000;
const address = { tenant: 'core', customerId: 'cust_1', key: 'sales', windowMs: hour };
const window = digestWindowAt(address, nowMs);
const next = digestWindowAt(address, window.toMs);
const open = (of: typeof window, ms: number) =>
  digestOpened({
    at: time(ms),
    digestId: of.digestId,
    key: 'sales',
    windowMs: hour,
    from: time(of.fromMs),
    to: time(of.toMs),
  });
const added = (of: typeof window, notificationId: string, ms: number) =>
  digestAdded({
    at: time(ms),
    digestId: of.digestId,
    notificationId,
    category: 'info',
    title: 'Hello',
  });
const digest = { key: 'sales', windowMs: hour };
const digestOf = (of: typeof window, count: number, items: { title: string; count: number }[]) => ({
  notificationId: of.digestId,
  category: 'digest' as const,
  title: `sales (${count})`,
  count,
  digest: { key: 'sales', from: time(of.fromMs), to: time(of.toMs), items },
});
const collecting = [
  open(window, nowMs),
  added(window, 'n-1', nowMs),
  wakeSet({ at, no: 1, wakeAt: time(window.toMs) }),
];

test('a digest opens with its first message and closes at the end of its window', () => {
  given(customerInbox, [opened]).when(message({ digest }), context).then(collecting);
  given(customerInbox, [opened, ...collecting])
    .when(message({ notificationId: 'n-2', digest }), { ...context, nowMs: nowMs + 9 })
    .then([added(window, 'n-2', nowMs + 9)]);
  given(customerInbox, [opened, ...collecting, added(window, 'n-2', nowMs + 9)])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: window.toMs })
    .then([
      digestClosed({ at: time(window.toMs), digestId: window.digestId, count: 2 }),
      inboxDelivered({
        at: time(window.toMs),
        notice: digestOf(window, 2, [
          { title: 'Hello', count: 1 },
          { title: 'Hello', count: 1 },
        ]),
        channels: ['socket'],
      }),
    ]);
});

const closing = [
  digestClosed({ at: time(window.toMs), digestId: window.digestId, count: 1 }),
  inboxDelivered({
    at: time(window.toMs),
    notice: digestOf(window, 1, [{ title: 'Hello', count: 1 }]),
    channels: ['socket'],
  }),
];

test('a message after the end of the window closes it and goes into the next', () => {
  given(customerInbox, [opened, ...collecting])
    .when(message({ notificationId: 'n-2', digest }), { ...context, nowMs: window.toMs })
    .then([
      ...closing,
      open(next, window.toMs),
      added(next, 'n-2', window.toMs),
      wakeSet({ at: time(window.toMs), no: 2, wakeAt: time(next.toMs) }),
    ]);
});

test('a message from a slow clock goes into the next window as well', () => {
  given(customerInbox, [opened, ...collecting, ...closing])
    .when(message({ notificationId: 'n-2', digest }), { ...context, nowMs: window.toMs - 2_000 })
    .then([
      open(next, window.toMs),
      added(next, 'n-2', window.toMs),
      wakeSet({ at: time(window.toMs), no: 2, wakeAt: time(next.toMs) }),
    ]);
});

test('a message finds its window closed even if many digests are due', () => {
  const keys = Array.from({ length: customerLimits.digestsMax }, (_, index) => `k-${index}`);
  const windowOf = (key: string) => digestWindowAt({ ...address, key }, nowMs);
  const openOf = (key: string) => {
    const { digestId, fromMs, toMs } = windowOf(key);
    return [
      digestOpened({ at, digestId, key, windowMs: hour, from: time(fromMs), to: time(toMs) }),
      digestAdded({ at, digestId, notificationId: key, category: 'info', title: 'Hello' }),
    ];
  };
  const last = keys.at(-1) ?? '';
  const late = message({ notificationId: 'late', digest: { key: last, windowMs: hour } });
  const { events } = givenState([opened, ...keys.flatMap(openOf)], late, window.toMs);
  const joined = events.findLast(({ type }) => type === 'customer-inbox.digest-added.v1');
  const into = (joined?.payload as { digestId: string } | undefined)?.digestId;
  assert.equal(into, digestWindowAt({ ...address, key: last }, window.toMs).digestId);
  const closed = events.filter(
    ({ type, payload }) =>
      type === 'customer-inbox.digest-closed.v1' &&
      (payload as { digestId: string }).digestId === windowOf(last).digestId,
  );
  assert.equal(closed.length, 1);
});

test('a notification in a digest cannot be acknowledged alone', () => {
  given(customerInbox, [opened, ...collecting])
    .when(acknowledgeNotification({ notificationId: 'n-1', by: 'ada' }), context)
    .thenRejected('notification-in-digest');
});

test('a second wake-up for a closed window has no effect', () => {
  given(customerInbox, [opened, ...collecting, ...closing])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: window.toMs })
    .then([]);
});

test('a preference collects a category into digests, and a digest is held during quiet hours', () => {
  const daily = configured({ categories: { info: { ...on, digestMs: hour } } });
  const own = { tenant: 'core', customerId: 'cust_1', key: 'info', windowMs: hour };
  const first = digestWindowAt(own, night);
  const [nightly] = [time(night)];
  const events = [
    digestOpened({
      at: nightly,
      digestId: first.digestId,
      key: 'info',
      windowMs: hour,
      from: time(first.fromMs),
      to: time(first.toMs),
    }),
    digestAdded({
      at: nightly,
      digestId: first.digestId,
      notificationId: 'n-1',
      category: 'info',
      title: 'Hello',
    }),
    wakeSet({ at: nightly, no: 1, wakeAt: time(first.toMs) }),
  ];
  given(customerInbox, [opened, daily])
    .when(message(), { ...context, nowMs: night })
    .then(events);
  given(customerInbox, [opened, daily, ...events])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: first.toMs })
    .thenState(({ held, wake }) => held.length === 1 && wake.atMs === Date.parse(morning));
});

const nag = {
  everyMs: 60_000,
  times: 3,
  escalate: { after: 2, to: 'boss', channels: ['email' as const] },
};
const nagged = delivered({ category: 'alert', nag });
const reminded = (step: number, ms: number, channels: ('email' | 'socket')[], last = false) =>
  inboxReminded({
    at: time(ms),
    notice: notice({ category: 'alert', nag }),
    step,
    channels,
    nextAt: last ? null : time(ms + 60_000),
  });
const wakeAt = (no: number, fromMs: number) =>
  wakeSet({ at: time(fromMs), no, wakeAt: time(fromMs + 60_000) });
const minute = (count: number): number => nowMs + count * 60_000;
const copyId = idFromKey('escalated core cust_1 boss n-1');
const escalated = inboxEscalated({
  at: time(minute(2)),
  notice: notice({ category: 'alert', nag }),
  step: 2,
  to: 'boss',
  copyId,
});

test('reminders repeat up to the limit and escalate to another customer', () => {
  const history: NewEvent[] = [opened, nagged, wakeAt(1, nowMs)];
  given(customerInbox, [])
    .when(message({ category: 'alert', nag }), context)
    .then([opened, nagged, wakeAt(1, nowMs)]);
  given(customerInbox, history)
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: minute(1) })
    .then([reminded(1, minute(1), ['socket']), wakeAt(2, minute(1))]);
  history.push(reminded(1, minute(1), ['socket']), wakeAt(2, minute(1)));
  given(customerInbox, history)
    .when(wakeInbox({ no: 2 }), { ...context, nowMs: minute(2) })
    .then([reminded(2, minute(2), ['socket', 'email']), escalated, wakeAt(3, minute(2))]);
  history.push(reminded(2, minute(2), ['socket', 'email']), escalated, wakeAt(3, minute(2)));
  given(customerInbox, history)
    .when(wakeInbox({ no: 3 }), { ...context, nowMs: minute(3) })
    .then([reminded(3, minute(3), ['socket', 'email'], true)])
    .thenState(({ nags }) => Object.keys(nags).length === 0);
});

test('a disabled category suppresses the reminder, but not the escalation', () => {
  const escalate = { after: 1, to: 'boss', channels: ['email' as const] };
  const often = { everyMs: 60_000, times: 1, escalate };
  const off = inboxConfigured({
    at,
    preferences: { ...preferences, categories: { info: { ...on, enabled: false } } },
  });
  const set = wakeSet({ at, no: 1, wakeAt: time(nowMs + 60_000) });
  const ignored = notice({ nag: often });
  const later = time(nowMs + 60_000);
  given(customerInbox, [opened, delivered({ nag: often }), set, off])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: nowMs + 60_000 })
    .then([
      inboxReminded({
        at: later,
        notice: ignored,
        step: 1,
        channels: [],
        isSuppressed: true,
        nextAt: null,
      }),
      inboxEscalated({ at: later, notice: ignored, step: 1, to: 'boss', copyId }),
    ]);
});

test('the second of two concurrent wake-ups sends no reminder', () => {
  given(customerInbox, [
    opened,
    nagged,
    wakeAt(1, nowMs),
    reminded(1, minute(1), ['socket']),
    wakeAt(2, minute(1)),
  ])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: minute(1) })
    .then([]);
});

test('an acknowledgement ends the reminders and lists the escalated copies', () => {
  const acknowledged = (more: object = {}) =>
    inboxAcknowledged({ at, notificationId: 'n-1', by: 'ada', ...more });
  const acknowledge = acknowledgeNotification({ notificationId: 'n-1', by: 'ada' });
  given(customerInbox, [opened, nagged]).when(acknowledge, context).then([acknowledged()]);
  given(customerInbox, [opened, nagged, acknowledged()]).when(acknowledge, context).then([]);
  given(customerInbox, [opened, nagged, acknowledged()])
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: minute(1) })
    .then([]);
  const copy = { customerId: 'boss', notificationId: copyId };
  given(customerInbox, [
    opened,
    nagged,
    reminded(2, nowMs, ['socket']),
    { ...escalated, payload: { ...escalated.payload, at } },
  ])
    .when(acknowledge, context)
    .then([acknowledged({ copy })]);
  const origin = { customerId: 'cust_0', notificationId: 'n-0' };
  given(customerInbox, [opened, delivered({ origin })])
    .when(acknowledge, context)
    .then([acknowledged({ origin })]);
});

test('a held notification that is acknowledged is not delivered', () => {
  given(customerInbox, [opened, configured(), ...heldEvents])
    .when(acknowledgeNotification({ notificationId: 'n-1', by: 'ada' }), {
      ...context,
      nowMs: night,
    })
    .thenState(({ held }) => held.length === 0);
});

test('an unknown notification cannot be acknowledged', () => {
  given(customerInbox, [opened])
    .when(acknowledgeNotification({ notificationId: 'n-1', by: 'ada' }), context)
    .thenRejected('notification-unknown');
});

test('reminders wait for the end of the quiet hours', () => {
  const late = Date.parse('2026-01-10T20:59:30.000Z');
  const before = [
    inboxOpened({ at: time(late) }),
    inboxConfigured({ at: time(late), preferences }),
    delivered({ category: 'alert', nag }, time(late)),
    wakeSet({ at: time(late), no: 1, wakeAt: time(late + 60_000) }),
  ];
  given(customerInbox, before)
    .when(wakeInbox({ no: 1 }), { ...context, nowMs: late + 60_000 })
    .then([wakeSet({ at: time(late + 60_000), no: 2, wakeAt: morning })]);
});

test('an escalation after the last reminder is rejected', () => {
  given(customerInbox, [])
    .when(message({ nag: { everyMs: 1_000, times: 2, escalate: { after: 3 } } }), context)
    .thenRejected('escalation-never');
});

test('the number of notifications with reminders is limited', () => {
  const full = Array.from({ length: customerLimits.nagsMax }, (_, index) =>
    delivered({ notificationId: `r-${index}`, nag }),
  );
  given(customerInbox, [opened, ...full])
    .when(message({ nag }), context)
    .thenRejected('inbox-full');
});
