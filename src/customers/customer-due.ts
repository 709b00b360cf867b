// What is due in an inbox at a time, and when something will be. Every command brings to its end what is due
// before it does anything of its own: whoever comes after the end of a window finds it closed, timer or not.

import { idFromKey } from '../foundation/ids.ts';
import {
  digestClosed,
  inboxDelivered,
  inboxEscalated,
  inboxHeld,
  inboxReminded,
  inboxSuppressed,
  wakeSet,
} from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import type { Category, Channel, Notice, Preferences } from './customer-schemas.ts';
import {
  applyInbox,
  preferenceFor,
  type InboxEvent,
  type InboxState,
  type OpenDigest,
  type OpenNag,
} from './customer-state.ts';
import { quietUntil } from './quiet-hours.ts';

/** Takes place step by step: each event is part of what the next step knows. */
export interface Happening {
  readonly state: InboxState;
  readonly events: readonly InboxEvent[];
  /** The inbox's time, as its events write it. */
  readonly at: string;
  readonly nowMs: number;
  /** By the preferences that hold now. */
  readonly quietUntilMs: () => number | undefined;
  add(event: InboxEvent): void;
}

export function happening(state: InboxState, clockMs: number): Happening {
  const nowMs = Math.max(clockMs, state.clockMs);
  const events: InboxEvent[] = [];
  let now = state;
  let quiet: { readonly by: Preferences; readonly untilMs: number | undefined } | undefined;
  return {
    get state() {
      return now;
    },
    events,
    nowMs,
    at: timeOf(nowMs),
    quietUntilMs() {
      if (quiet?.by !== now.preferences) {
        quiet = { by: now.preferences, untilMs: quietUntil(hoursOf(now), nowMs) };
      }
      return quiet.untilMs;
    },
    add(event) {
      events.push(event);
      now = applyInbox(now, event);
    },
  };
}

/** Whose inbox. */
interface InboxAddress {
  readonly tenant: string;
  readonly id: string;
}

/** Digests whose window is over, what waited for the end of the quiet hours, reminders. */
export function bringDue(happens: Happening, address: InboxAddress): void {
  const isFull = (): boolean => happens.events.length >= limits.eventsPerCommand;
  for (const digest of dueDigests(happens)) {
    if (isFull()) return;
    closeDigest(happens, digest);
  }
  for (const notice of happens.state.held) {
    if (isFull()) return;
    // Its category may have been turned off, or let through, while it waited.
    if (quietFor(happens, notice.category) === undefined) deliver(happens, notice);
  }
  for (const nag of Object.values(happens.state.nags)) {
    if (isFull()) return;
    const isDue =
      nag.dueAtMs <= happens.nowMs && quietFor(happens, nag.notice.category) === undefined;
    if (isDue) remind(happens, nag, address);
  }
}

/** Now, or at the end of the quiet hours, or not at all: as the customer wants it. */
export function tell(happens: Happening, notice: Notice): void {
  const { at, state } = happens;
  const untilMs = quietFor(happens, notice.category);
  const isWanted = preferenceFor(state.preferences, notice.category).enabled;
  if (!isWanted || untilMs === undefined) return deliver(happens, notice);
  happens.add(inboxHeld({ at, notice, until: timeOf(untilMs) }));
}

export function isHeld(happens: Happening, category: Category): boolean {
  return quietFor(happens, category) !== undefined;
}

/** Sets the customer's clock, where it does not come soon enough by itself. */
export function setWake(happens: Happening, woken?: number): void {
  const { state, nowMs, at } = happens;
  const dueMs = nextDue(happens);
  if (dueMs === undefined) return;
  const { no, atMs } = state.wake;
  // Too early by our clock: again, later than before, or two clocks would play ball.
  const isEarly = woken === no && atMs !== undefined && atMs > nowMs;
  if (!isEarly && atMs !== undefined && atMs > nowMs && atMs <= dueMs) return;
  const wakeAtMs = isEarly ? Math.max(dueMs, atMs + limits.earlyWakeMs) : dueMs;
  happens.add(wakeSet({ at, no: no + 1, wakeAt: timeOf(wakeAtMs) }));
}

/** When something has to be done; not after now: more than one command could do. */
function nextDue(happens: Happening): number | undefined {
  const { state, nowMs } = happens;
  const { digests, held, nags } = state;
  const dues = Object.values(digests).map(({ toMs }) => toMs);
  for (const { category } of held) dues.push(quietFor(happens, category) ?? nowMs);
  const breaking: number[] = [];
  const others: number[] = [];
  for (const { notice, dueAtMs } of Object.values(nags)) {
    const isBreaking = preferenceFor(state.preferences, notice.category).breaksQuiet;
    (isBreaking ? breaking : others).push(dueAtMs);
  }
  dues.push(...breaking);
  if (others.length > 0) {
    // The end of the quiet hours comes no earlier for what is due later: the first one says it all.
    const firstMs = Math.max(nowMs, Math.min(...others));
    dues.push(quietUntil(hoursOf(state), firstMs) ?? firstMs);
  }
  return dues.length === 0 ? undefined : Math.min(...dues);
}

function dueDigests({ state, nowMs }: Happening): readonly OpenDigest[] {
  return Object.values(state.digests)
    .filter(({ toMs }) => toMs <= nowMs)
    .toSorted((a, b) => a.toMs - b.toMs);
}

export function closeDigest(happens: Happening, digest: OpenDigest): void {
  const { digestId, key, fromMs, toMs, count, items } = digest;
  happens.add(digestClosed({ at: happens.at, digestId, count }));
  tell(happens, {
    notificationId: digestId,
    category: 'digest',
    title: `${key} (${count})`,
    count,
    digest: { key, from: timeOf(fromMs), to: timeOf(toMs), items: [...items] },
  });
}

function deliver(happens: Happening, notice: Notice): void {
  const { at, state } = happens;
  const { enabled, channels } = preferenceFor(state.preferences, notice.category);
  if (enabled) happens.add(inboxDelivered({ at, notice, channels }));
  else happens.add(inboxSuppressed({ at, notice }));
}

function remind(
  happens: Happening,
  { notice, step: before }: OpenNag,
  { tenant, id }: InboxAddress,
): void {
  const { at, nowMs, state } = happens;
  const { nag, notificationId } = notice;
  if (nag === undefined) return;
  const { everyMs, times, escalate } = nag;
  const step = before + 1;
  const { enabled, channels: usual } = preferenceFor(state.preferences, notice.category);
  const isEscalated = escalate !== undefined && step >= escalate.after;
  const channels: Channel[] = isEscalated
    ? [...new Set([...usual, ...(escalate.channels ?? [])])]
    : usual;
  const nextAt = step >= times ? null : timeOf(nowMs + everyMs);
  const heard = enabled ? { channels } : { channels: [], isSuppressed: true as const };
  happens.add(inboxReminded({ at, notice, step, ...heard, nextAt }));
  if (escalate === undefined || step !== escalate.after) return;
  const { to } = escalate;
  const copyId = idFromKey(`escalated ${tenant} ${id} ${to ?? ''} ${notificationId}`);
  happens.add(inboxEscalated({ at, notice, step, ...(to === undefined ? {} : { to, copyId }) }));
}

/** Until when a category has to wait; undefined: it need not. */
function quietFor(
  { state, quietUntilMs }: Pick<Happening, 'quietUntilMs' | 'state'>,
  category: Category,
): number | undefined {
  return preferenceFor(state.preferences, category).breaksQuiet ? undefined : quietUntilMs();
}

function hoursOf({ preferences: { timeZone, quietHours } }: InboxState) {
  return { timeZone, windows: quietHours };
}

export function timeOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
