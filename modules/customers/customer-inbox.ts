// The inbox of a customer decides whether a notification is delivered, held, merged, added to a digest or suppressed.

import { defineAggregate, CommandRejected, type DecideContext } from 'millrace/aggregates';
import { isTimeZone } from 'millrace/foundation';
import { subjectHeader } from 'millrace/store';
import { customerSubject } from './customer-contact.ts';
import {
  performDue,
  closeDigest,
  deliverOrHold,
  isHeld,
  setWake,
  startTurn,
  timeOf,
  type InboxTurn,
} from './customer-due.ts';
import {
  acknowledgeNotification,
  configureCustomer,
  digestAdded,
  digestClosed,
  digestOpened,
  inboxAcknowledged,
  inboxConfigured,
  inboxEvents,
  inboxMerged,
  inboxOpened,
  inboxSuppressed,
  notificationIdOf,
  notifyCustomer,
  wakeInbox,
  wakeSet,
  type InboxEvent,
} from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import { idPattern, present, type CustomerMessage, type Preferences } from './customer-schemas.ts';
import {
  entryOf,
  evolveInbox,
  initialInbox,
  mergeSlot,
  preferenceFor,
  type InboxState,
} from './customer-state.ts';
import { digestSlot, digestWindowAt } from './digest-window.ts';
import { isEndless } from './quiet-hours.ts';

/**
 * The aggregate `customer-inbox`; its id is the customer's.
 *
 * @example
 * import { customerCommands, customerInbox } from 'millrace/customers';
 * import { given } from 'millrace/testing';
 *
 * given(customerInbox, [])
 *   .when(customerCommands.notify({ notificationId: 'n-1', category: 'info', title: 'Hello' }))
 *   .thenState(({ isOpen }) => isOpen);
 */
export const customerInbox = defineAggregate({
  bc: 'notify',
  name: 'customer-inbox',
  version: 1,
  events: inboxEvents,
  commands: [notifyCustomer, configureCustomer, acknowledgeNotification, wakeInbox],
  initial: initialInbox,
  // Version 3: snapshots are encrypted with the key of the customer.
  snapshot: { codeVersion: 3 },
  evolve: evolveInbox,
  decide: {
    'customer-inbox.notify': (message, state, context) =>
      decided(state, context, (turn) => accept(turn, message, context)),
    'customer-inbox.configure': ({ preferences }, state, context) => {
      checkPreferences(preferences);
      return decided(state, context, (turn) => {
        turn.add(inboxConfigured({ at: turn.at, preferences }));
        // The new quiet hours may release held notifications.
        performDue(turn, context);
      });
    },
    'customer-inbox.acknowledge': (request, state, context) =>
      decided(state, context, (turn) => acknowledge(turn, request)),
    'customer-inbox.wake': ({ no }, state, context) => {
      if (!state.isOpen) return [];
      const turn = startTurn(state, context.nowMs);
      performDue(turn, context);
      setWake(turn, no);
      return personal(turn.events, context);
    },
  },
});

function decided(
  state: InboxState,
  { id, nowMs, tenant }: DecideContext,
  act: (turn: InboxTurn) => void,
): readonly InboxEvent[] {
  if (!idPattern.test(id)) {
    throw new CommandRejected(
      'customer-id-invalid',
      `customer id '${id}' must be 1 to 64 letters, digits, "_" or "-"`,
    );
  }
  const turn = startTurn(state, nowMs);
  performDue(turn, { tenant, id });
  const before = turn.events.length;
  if (!state.isOpen) turn.add(inboxOpened({ at: turn.at }));
  act(turn);
  // A command without an effect stores nothing: the wake-up performs the work that is due.
  if (turn.events.length === before) return [];
  setWake(turn);
  return personal(turn.events, { tenant, id });
}

/** Events without texts and preferences. The timers of an inbox must not depend on the key of the customer. */
const impersonalTypes: ReadonlySet<string> = new Set(
  [inboxMerged, digestClosed, inboxAcknowledged, wakeSet].map(({ type }) => type),
);

/** Encrypts events with the key of the customer. The read model needs the id also when the text is erased. */
function personal(
  events: readonly InboxEvent[],
  { tenant, id }: Pick<DecideContext, 'id' | 'tenant'>,
): readonly InboxEvent[] {
  const subject = { [subjectHeader]: customerSubject(tenant, id) };
  return events.map((event) =>
    impersonalTypes.has(event.type)
      ? event
      : {
          ...event,
          headers: present({ ...subject, notificationId: notificationIdOf(event.payload) }),
        },
  );
}

function accept(turn: InboxTurn, message: CustomerMessage, context: DecideContext): void {
  const { at, state, nowMs } = turn;
  const { digest: requestedDigest, ...content } = message;
  const { notificationId, category, title, key, nag } = content;
  if (entryOf(state.recent, notificationId) !== undefined) return;
  const preference = preferenceFor(state.preferences, category);
  const notice = { ...content, count: 1 };
  if (!preference.enabled) return turn.add(inboxSuppressed({ at, notice }));
  const open = key === undefined ? undefined : entryOf(state.merges, mergeSlot(category, key));
  if (open !== undefined && open.untilMs > nowMs && mayMerge(state, open, message)) {
    const { notificationId: first, count } = open;
    const merged = { at, notificationId: first, mergedId: notificationId, count: count + 1 };
    return turn.add(inboxMerged(merged));
  }
  const digest =
    requestedDigest ??
    (preference.digestMs === undefined
      ? undefined
      : { key: category, windowMs: preference.digestMs });
  // A notification that needs an acknowledgement does not wait for a digest.
  if (digest === undefined || nag !== undefined) {
    checkNag(message, state);
    if (isHeld(turn, category)) checkRoom(state);
    return deliverOrHold(turn, notice);
  }
  const address = { tenant: context.tenant, customerId: context.id, ...digest };
  let openDigest = entryOf(state.digests, digestSlot(digest));
  if (openDigest !== undefined && openDigest.toMs <= nowMs) {
    // More work was due than one command performs, so this digest is still open after its window.
    closeDigest(turn, openDigest);
    openDigest = undefined;
  }
  const { digestId, fromMs, toMs } = openDigest ?? digestWindowAt(address, nowMs);
  if (openDigest === undefined) {
    const count = Object.keys(turn.state.digests).length;
    if (count >= limits.digestsMax) throw full('digests', count);
    // The digest itself may be held later.
    checkRoom(turn.state);
    turn.add(digestOpened({ at, digestId, ...digest, from: timeOf(fromMs), to: timeOf(toMs) }));
  }
  turn.add(digestAdded(present({ at, digestId, notificationId, category, title, key })));
}

/** Counts open digests as well: each may be held later, and must not be dropped then. */
function checkRoom({ held, digests }: InboxState): void {
  const count = held.length + Object.keys(digests).length;
  if (count >= limits.heldMax) throw full('held notifications and open digests', count);
}

/** A message with reminders merges only into a notification with reminders, or into an acknowledged one. */
function mayMerge(
  { held, nags, recent }: InboxState,
  { notificationId }: { readonly notificationId: string },
  { nag }: CustomerMessage,
): boolean {
  if (nag === undefined || entryOf(recent, notificationId)?.isAcknowledged === true) return true;
  const hasReminders = entryOf(nags, notificationId) !== undefined;
  return hasReminders || held.some((each) => each.notificationId === notificationId && each.nag);
}

function checkNag({ nag }: CustomerMessage, { nags }: InboxState): void {
  if (nag === undefined) return;
  if (nag.escalate !== undefined && nag.escalate.after > nag.times) {
    const { escalate, times } = nag;
    throw new CommandRejected(
      'escalation-never',
      `escalation after reminder ${escalate.after} is impossible: there are at most ${times} reminders`,
    );
  }
  const count = Object.keys(nags).length;
  if (count >= limits.nagsMax) throw full('notifications with pending reminders', count);
}

function acknowledge(
  turn: InboxTurn,
  {
    notificationId: requestedId,
    by,
    listed,
  }: ReturnType<typeof acknowledgeNotification>['payload'],
): void {
  const { recent, nags } = turn.state;
  const { mergedInto, digestId } = entryOf(recent, requestedId) ?? {};
  if (digestId !== undefined) {
    throw new CommandRejected(
      'notification-in-digest',
      `notification ${requestedId} is part of the digest ${digestId}: acknowledge the digest`,
    );
  }
  const notificationId = mergedInto ?? requestedId;
  const found = entryOf(recent, notificationId);
  const nag = entryOf(nags, notificationId);
  const isKnown = found !== undefined || nag !== undefined || mergedInto !== undefined;
  if (!isKnown && listed === undefined) {
    throw new CommandRejected('notification-unknown', `unknown notification '${notificationId}'`);
  }
  if (found?.isAcknowledged === true) return;
  const origin = found?.origin ?? nag?.notice.origin ?? listed?.origin;
  const copy = found?.copy ?? nag?.copy ?? listed?.copy;
  turn.add(inboxAcknowledged(present({ at: turn.at, notificationId, by, origin, copy })));
}

function checkPreferences({ timeZone, quietHours }: Preferences): void {
  if (!isTimeZone(timeZone)) {
    throw new CommandRejected('time-zone-unknown', `unknown time zone '${timeZone}'`);
  }
  if (isEndless(quietHours)) {
    throw new CommandRejected(
      'quiet-hours-endless',
      'the quiet hours cover every minute of the week',
    );
  }
}

function full(what: string, count: number): CommandRejected {
  return new CommandRejected('inbox-full', `the inbox is full: it has ${count} ${what}`);
}
