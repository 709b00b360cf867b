// The work of an inbox that is due at a time, and the time of the next. Every command first performs the work that is
// due, so a window that has ended is closed even if the wake-up is late.

import { idFromKey } from 'millrace/foundation';
import {
  digestClosed,
  inboxDelivered,
  inboxEscalated,
  inboxHeld,
  inboxReminded,
  inboxSuppressed,
  wakeSet,
  type InboxEvent,
} from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import type { Category, Channel, Notice, Preferences } from './customer-schemas.ts';
import {
  applyInbox,
  preferenceFor,
  type InboxState,
  type OpenDigest,
  type OpenNag,
} from './customer-state.ts';
import { quietUntil } from './quiet-hours.ts';

/** The events of one command; each event updates the state that the next step reads. */
export interface InboxTurn {
  readonly state: InboxState;
  readonly events: readonly InboxEvent[];
  /** The time for the events of this turn. */
  readonly at: string;
  readonly nowMs: number;
  /** The end of the current quiet time by the latest preferences. */
  readonly quietUntilMs: () => number | undefined;
  add(event: InboxEvent): void;
}

export function startTurn(state: InboxState, clockMs: number): InboxTurn {
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

interface InboxAddress {
  readonly tenant: string;
  readonly id: string;
}

/** Closes digests, delivers held notifications after the quiet hours, and sends reminders. */
export function performDue(turn: InboxTurn, address: InboxAddress): void {
  const isFull = (): boolean => turn.events.length >= limits.eventsPerCommand;
  for (const digest of dueDigests(turn)) {
    if (isFull()) return;
    closeDigest(turn, digest);
  }
  for (const notice of turn.state.held) {
    if (isFull()) return;
    // The preferences of its category may have changed while it was held.
    if (quietFor(turn, notice.category) === undefined) deliver(turn, notice);
  }
  for (const nag of Object.values(turn.state.nags)) {
    if (isFull()) return;
    const isDue = nag.dueAtMs <= turn.nowMs && quietFor(turn, nag.notice.category) === undefined;
    if (isDue) remind(turn, nag, address);
  }
}

export function deliverOrHold(turn: InboxTurn, notice: Notice): void {
  const { at, state } = turn;
  const untilMs = quietFor(turn, notice.category);
  const isWanted = preferenceFor(state.preferences, notice.category).enabled;
  if (!isWanted || untilMs === undefined) return deliver(turn, notice);
  turn.add(inboxHeld({ at, notice, until: timeOf(untilMs) }));
}

export function isHeld(turn: InboxTurn, category: Category): boolean {
  return quietFor(turn, category) !== undefined;
}

/** Sets a wake-up unless an early enough one is already set. `woken`: the number of the wake-up that runs now. */
export function setWake(turn: InboxTurn, woken?: number): void {
  const { state, nowMs, at } = turn;
  const dueMs = nextDue(turn);
  if (dueMs === undefined) return;
  const { no, atMs } = state.wake;
  // The wake-up was early by the local clock: add a delay, or two skewed clocks would re-arm each other forever.
  const isEarly = woken === no && atMs !== undefined && atMs > nowMs;
  if (!isEarly && atMs !== undefined && atMs > nowMs && atMs <= dueMs) return;
  const wakeAtMs = isEarly ? Math.max(dueMs, atMs + limits.earlyWakeMs) : dueMs;
  turn.add(wakeSet({ at, no: no + 1, wakeAt: timeOf(wakeAtMs) }));
}

/** The next due time, which is in the past if one command could not perform all due work. */
function nextDue(turn: InboxTurn): number | undefined {
  const { state, nowMs } = turn;
  const { digests, held, nags } = state;
  const dues = Object.values(digests).map(({ toMs }) => toMs);
  for (const { category } of held) dues.push(quietFor(turn, category) ?? nowMs);
  const breaking: number[] = [];
  const others: number[] = [];
  for (const { notice, dueAtMs } of Object.values(nags)) {
    const isBreaking = preferenceFor(state.preferences, notice.category).breaksQuiet;
    (isBreaking ? breaking : others).push(dueAtMs);
  }
  dues.push(...breaking);
  if (others.length > 0) {
    // A later reminder never ends its quiet time earlier, so the first one decides.
    const firstMs = Math.max(nowMs, Math.min(...others));
    dues.push(quietUntil(hoursOf(state), firstMs) ?? firstMs);
  }
  return dues.length === 0 ? undefined : Math.min(...dues);
}

function dueDigests({ state, nowMs }: InboxTurn): readonly OpenDigest[] {
  return Object.values(state.digests)
    .filter(({ toMs }) => toMs <= nowMs)
    .toSorted((a, b) => a.toMs - b.toMs);
}

export function closeDigest(turn: InboxTurn, digest: OpenDigest): void {
  const { digestId, key, fromMs, toMs, count, items } = digest;
  turn.add(digestClosed({ at: turn.at, digestId, count }));
  deliverOrHold(turn, {
    notificationId: digestId,
    category: 'digest',
    title: `${key} (${count})`,
    count,
    digest: { key, from: timeOf(fromMs), to: timeOf(toMs), items: [...items] },
  });
}

function deliver(turn: InboxTurn, notice: Notice): void {
  const { at, state } = turn;
  const { enabled, channels } = preferenceFor(state.preferences, notice.category);
  if (enabled) turn.add(inboxDelivered({ at, notice, channels }));
  else turn.add(inboxSuppressed({ at, notice }));
}

function remind(
  turn: InboxTurn,
  { notice, step: before }: OpenNag,
  { tenant, id }: InboxAddress,
): void {
  const { at, nowMs, state } = turn;
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
  const delivery = enabled ? { channels } : { channels: [], isSuppressed: true as const };
  turn.add(inboxReminded({ at, notice, step, ...delivery, nextAt }));
  if (escalate === undefined || step !== escalate.after) return;
  const { to } = escalate;
  const copyId = idFromKey(`escalated ${tenant} ${id} ${to ?? ''} ${notificationId}`);
  turn.add(inboxEscalated({ at, notice, step, ...(to === undefined ? {} : { to, copyId }) }));
}

/** The end of the quiet time for a category; undefined if it is delivered now. */
function quietFor(
  { state, quietUntilMs }: Pick<InboxTurn, 'quietUntilMs' | 'state'>,
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
