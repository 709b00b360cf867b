// The inbox of a customer: one stream that decides, in one order, what is told now, later, together or not at all.

import { defineAggregate } from '../aggregates/define-aggregate.ts';
import { Refused } from '../aggregates/refused.ts';
import type { DecideContext } from '../aggregates/aggregate.ts';
import { isSubjectToken } from '../contracts/subject-tokens.ts';
import { isTimeZone } from '../foundation/time-zone.ts';
import {
  bringDue,
  closeDigest,
  happening,
  isHeld,
  setWake,
  tell,
  timeOf,
  type Happening,
} from './customer-due.ts';
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
} from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import type { CustomerMessage, Preferences } from './customer-schemas.ts';
import {
  entryOf,
  evolveInbox,
  initialInbox,
  mergeSlot,
  preferenceFor,
  type InboxEvent,
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
  events: [
    inboxOpened,
    inboxConfigured,
    inboxSuppressed,
    inboxHeld,
    inboxDelivered,
    inboxMerged,
    digestOpened,
    digestAdded,
    digestClosed,
    inboxReminded,
    inboxEscalated,
    inboxAcknowledged,
    wakeSet,
  ],
  commands: [notifyCustomer, configureCustomer, acknowledgeNotification, wakeInbox],
  initial: initialInbox,
  // 2: what was merged, and into which.
  snapshot: { codeVersion: 2 },
  evolve: evolveInbox,
  decide: {
    'customer-inbox.notify': (message, state, context) =>
      decided(state, context, (happens) => accept(happens, message, context)),
    'customer-inbox.configure': ({ preferences }, state, context) => {
      checkPreferences(preferences);
      return decided(state, context, (happens) => {
        happens.add(inboxConfigured({ at: happens.at, preferences }));
        // What waited for the old quiet hours may not have to any more.
        bringDue(happens, context);
      });
    },
    'customer-inbox.acknowledge': (request, state, context) =>
      decided(state, context, (happens) => acknowledge(happens, request)),
    'customer-inbox.wake': ({ no }, state, context) => {
      if (!state.isOpen) return [];
      const happens = happening(state, context.nowMs);
      bringDue(happens, context);
      setWake(happens, no);
      return happens.events;
    },
  },
});

function decided(
  state: InboxState,
  { id, nowMs, tenant }: DecideContext,
  act: (happens: Happening) => void,
): readonly InboxEvent[] {
  if (!isSubjectToken('customer id', id)) {
    throw new Refused('customer-id-invalid', `'${id}' cannot be part of a subject`);
  }
  const happens = happening(state, nowMs);
  bringDue(happens, { tenant, id });
  const before = happens.events.length;
  if (!state.isOpen) happens.add(inboxOpened({ at: happens.at }));
  act(happens);
  // What was due would be brought by the clock: a command without an effect leaves no trace.
  if (happens.events.length === before) return [];
  setWake(happens);
  return happens.events;
}

function accept(happens: Happening, message: CustomerMessage, context: DecideContext): void {
  const { at, state, nowMs } = happens;
  const { notificationId, category, title, body, key, mergeMs, nag, origin } = message;
  if (entryOf(state.recent, notificationId) !== undefined) return;
  const preference = preferenceFor(state.preferences, category);
  const notice = {
    notificationId,
    category,
    title,
    ...(body === undefined ? {} : { body }),
    ...(key === undefined ? {} : { key }),
    ...(mergeMs === undefined ? {} : { mergeMs }),
    count: 1,
    ...(nag === undefined ? {} : { nag }),
    ...(origin === undefined ? {} : { origin }),
  };
  if (!preference.enabled) return happens.add(inboxSuppressed({ at, notice }));
  const alike = key === undefined ? undefined : entryOf(state.merges, mergeSlot(category, key));
  if (alike !== undefined && alike.untilMs > nowMs && mayMerge(state, alike, message)) {
    const { notificationId: first, count } = alike;
    const merged = { at, notificationId: first, mergedId: notificationId, count: count + 1 };
    return happens.add(inboxMerged(merged));
  }
  const digest =
    message.digest ??
    (preference.digestMs === undefined
      ? undefined
      : { key: category, windowMs: preference.digestMs });
  // Whoever has to answer is not kept waiting for a digest.
  if (digest === undefined || nag !== undefined) {
    checkNag(message, state);
    if (isHeld(happens, category)) checkRoom(state);
    return tell(happens, notice);
  }
  const address = { tenant: context.tenant, customerId: context.id, ...digest };
  let open = entryOf(state.digests, digestSlot(digest));
  if (open !== undefined && open.toMs <= nowMs) {
    // More were due than one command brings to their end: this one must not take in what comes late.
    closeDigest(happens, open);
    open = undefined;
  }
  const window = open ?? digestWindowAt(address, nowMs);
  const { digestId, fromMs, toMs } = window;
  if (open === undefined) {
    const count = Object.keys(happens.state.digests).length;
    if (count >= limits.digestsMax) throw full('digests', count);
    // It may have to wait for the end of quiet hours, too.
    checkRoom(happens.state);
    happens.add(digestOpened({ at, digestId, ...digest, from: timeOf(fromMs), to: timeOf(toMs) }));
  }
  happens.add(
    digestAdded({
      at,
      digestId,
      notificationId,
      category,
      title,
      ...(key === undefined ? {} : { key }),
    }),
  );
}

/** What waits, and the digests that may: none is dropped later. */
function checkRoom({ held, digests }: InboxState): void {
  const count = held.length + Object.keys(digests).length;
  if (count >= limits.heldMax) throw full('notifications that wait', count);
}

/** A message that wants an answer is no part of one that nobody is reminded of, unless it was answered. */
function mayMerge(
  { held, nags, recent }: InboxState,
  { notificationId }: { readonly notificationId: string },
  { nag }: CustomerMessage,
): boolean {
  if (nag === undefined || entryOf(recent, notificationId)?.isAcknowledged === true) return true;
  const isNagged = entryOf(nags, notificationId) !== undefined;
  return isNagged || held.some((each) => each.notificationId === notificationId && each.nag);
}

function checkNag({ nag }: CustomerMessage, { nags }: InboxState): void {
  if (nag === undefined) return;
  if (nag.escalate !== undefined && nag.escalate.after > nag.times) {
    const { escalate, times } = nag;
    throw new Refused(
      'escalation-never',
      `there are ${times} reminders: none is the ${escalate.after}th`,
    );
  }
  const count = Object.keys(nags).length;
  if (count >= limits.nagsMax) throw full('notifications that are reminded of', count);
}

function acknowledge(
  happens: Happening,
  { notificationId: asked, by, listed }: ReturnType<typeof acknowledgeNotification>['payload'],
): void {
  const { recent, nags } = happens.state;
  const { mergedInto, digestId } = entryOf(recent, asked) ?? {};
  if (digestId !== undefined) {
    throw new Refused('notification-in-digest', `${asked} is part of the digest ${digestId}`);
  }
  const notificationId = mergedInto ?? asked;
  const found = entryOf(recent, notificationId);
  const nag = entryOf(nags, notificationId);
  const isKnown = found !== undefined || nag !== undefined || mergedInto !== undefined;
  if (!isKnown && listed === undefined) {
    throw new Refused('notification-unknown', `there is no notification ${notificationId}`);
  }
  if (found?.isAcknowledged === true) return;
  const origin = found?.origin ?? nag?.notice.origin ?? listed?.origin;
  const copy = found?.copy ?? nag?.copy ?? listed?.copy;
  happens.add(
    inboxAcknowledged({
      at: happens.at,
      notificationId,
      by,
      ...(origin === undefined ? {} : { origin }),
      ...(copy === undefined ? {} : { copy }),
    }),
  );
}

function checkPreferences({ timeZone, quietHours }: Preferences): void {
  if (!isTimeZone(timeZone)) {
    throw new Refused('time-zone-unknown', `unknown time zone '${timeZone}'`);
  }
  if (isEndless(quietHours)) {
    throw new Refused('quiet-hours-endless', 'the quiet hours leave no minute of the week');
  }
}

function full(what: string, count: number): Refused {
  return new Refused('inbox-full', `there are ${count} ${what}, and no room for more`);
}
