// The state of an inbox: open work and recent notifications, and how each event changes it.

import { inboxEvents, type InboxEvent, type InboxPayloads } from './customer-events.ts';
import { customerLimits as limits } from './customer-limits.ts';
import {
  present,
  type Category,
  type CategoryPreference,
  type DigestItem,
  type Notice,
  type Preferences,
} from './customer-schemas.ts';
import { digestSlot } from './digest-window.ts';

export interface OpenDigest {
  readonly digestId: string;
  readonly key: string;
  readonly windowMs: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
  readonly items: readonly DigestItem[];
}

interface OpenMerge {
  readonly notificationId: string;
  readonly untilMs: number;
  readonly count: number;
}

export interface OpenNag {
  readonly notice: Notice;
  /** Reminders sent so far. */
  readonly step: number;
  readonly dueAtMs: number;
  /** The notification that this one was escalated to. */
  readonly copy?: Counterpart | undefined;
}

/** A copy of the notification in the inbox of another customer. */
export interface Counterpart {
  readonly customerId: string;
  readonly notificationId: string;
}

interface RecentNotification {
  readonly isAcknowledged: boolean;
  readonly origin?: Counterpart | undefined;
  readonly copy?: Counterpart | undefined;
  /** An acknowledgement applies to this notification instead. */
  readonly mergedInto?: string | undefined;
  readonly digestId?: string | undefined;
}

type Book<Entry> = Readonly<Record<string, Entry>>;

export interface InboxState {
  readonly isOpen: boolean;
  /** The latest time in the stream: the time of an inbox never decreases. */
  readonly clockMs: number;
  readonly preferences: Preferences;
  /** Held notifications in order of arrival. */
  readonly held: readonly Notice[];
  /** Notifications that can still merge, by `mergeSlot`. */
  readonly merges: Book<OpenMerge>;
  /** Open digests, by `digestSlot`. */
  readonly digests: Book<OpenDigest>;
  /** Notifications with pending reminders, by notification id. */
  readonly nags: Book<OpenNag>;
  readonly recent: Book<RecentNotification>;
  readonly wake: { readonly no: number; readonly atMs: number | undefined };
}

export const initialInbox: InboxState = {
  isOpen: false,
  clockMs: 0,
  preferences: { timeZone: 'UTC', quietHours: [], categories: {} },
  held: [],
  merges: {},
  digests: {},
  nags: {},
  recent: {},
  wake: { no: 0, atMs: undefined },
};

const preferenceDefault: CategoryPreference = {
  enabled: true,
  channels: ['socket'],
  breaksQuiet: false,
};

export function preferenceFor({ categories }: Preferences, category: Category): CategoryPreference {
  return categories[category] ?? preferenceDefault;
}

type Evolve = {
  readonly [Type in keyof InboxPayloads]: (
    state: InboxState,
    payload: InboxPayloads[Type],
  ) => InboxState;
};

/** The clock of the given state is already at the time of the event. */
const changes: Evolve = {
  'customer-inbox.opened.v1': (state) => ({ ...state, isOpen: true }),
  'customer-inbox.configured.v1': (state, { preferences }) => ({ ...state, preferences }),
  'customer-inbox.suppressed.v1': (state, { notice }) =>
    remember(removeHeld(state, notice), notice),
  'customer-inbox.held.v1': (state, { notice, until }) => {
    const after = remember(openMerge(state, notice, Date.parse(until)), notice);
    return { ...after, held: [...after.held, notice] };
  },
  'customer-inbox.delivered.v1': (state, { notice }) => {
    const rest = removeHeld(state, notice);
    // The merge window of a held notification started when it was held.
    const after = remember(rest === state ? openMerge(state, notice) : rest, notice);
    if (notice.nag === undefined) return after;
    const nag = { notice, step: 0, dueAtMs: after.clockMs + notice.nag.everyMs };
    return { ...after, nags: put(after.nags, notice.notificationId, nag) };
  },
  'customer-inbox.merged.v1': (state, { notificationId, mergedId, count }) => {
    const counted = <Entry extends { readonly notificationId: string }>(each: Entry): Entry =>
      each.notificationId === notificationId ? { ...each, count } : each;
    const after = {
      ...state,
      held: state.held.map(counted),
      merges: mapBook(state.merges, counted),
      nags: mapBook(state.nags, (nag) => ({ ...nag, notice: counted(nag.notice) })),
    };
    return remember(after, { notificationId: mergedId }, { mergedInto: notificationId });
  },
  'customer-inbox.digest-opened.v1': (state, { digestId, key, windowMs, from, to }) => {
    const [fromMs, toMs] = [Date.parse(from), Date.parse(to)];
    const digest = { digestId, key, windowMs, fromMs, toMs, count: 0, items: [] };
    return { ...state, digests: put(state.digests, digestSlot(digest), digest) };
  },
  'customer-inbox.digest-added.v1': (state, { digestId, notificationId, title, key }) => {
    const digests = mapBook(state.digests, (digest) =>
      digest.digestId === digestId ? withItem(digest, title, key) : digest,
    );
    return remember({ ...state, digests }, { notificationId }, { digestId });
  },
  'customer-inbox.digest-closed.v1': (state, { digestId }) => {
    const open = Object.entries(state.digests).filter(([, each]) => each.digestId !== digestId);
    return { ...state, digests: Object.fromEntries(open) };
  },
  'customer-inbox.reminded.v1': (state, { notice, step, nextAt }) => {
    const { notificationId } = notice;
    if (nextAt === null) return { ...state, nags: without(state.nags, notificationId) };
    const before = entryOf(state.nags, notificationId);
    const nag = { ...before, notice, step, dueAtMs: Date.parse(nextAt) };
    return { ...state, nags: put(state.nags, notificationId, nag) };
  },
  'customer-inbox.escalated.v1': (state, { notice: { notificationId }, to, copyId }) => {
    if (to === undefined || copyId === undefined) return state;
    const copy = { customerId: to, notificationId: copyId };
    const entry = entryOf(state.recent, notificationId) ?? { isAcknowledged: false };
    const nag = entryOf(state.nags, notificationId);
    return {
      ...state,
      recent: put(state.recent, notificationId, { ...entry, copy }),
      nags: nag === undefined ? state.nags : put(state.nags, notificationId, { ...nag, copy }),
    };
  },
  'customer-inbox.acknowledged.v1': (state, { notificationId }) => {
    const entry = { ...entryOf(state.recent, notificationId), isAcknowledged: true };
    return {
      ...removeHeld(state, { notificationId }),
      nags: without(state.nags, notificationId),
      recent: latest(put(state.recent, notificationId, entry), limits.recentMax),
    };
  },
  'customer-inbox.wake-set.v1': (state, { no, wakeAt }) => ({
    ...state,
    wake: { no, atMs: Date.parse(wakeAt) },
  }),
};

export function applyInbox(state: InboxState, { type, payload }: InboxEvent): InboxState {
  // The compiler cannot relate each payload to its handler through the table.
  const change = changes[type] as (state: InboxState, payload: unknown) => InboxState;
  return change(advanceClock(state, payload.at), payload);
}

export const evolveInbox = Object.fromEntries(
  inboxEvents.map(({ type }) => [
    type,
    (state: InboxState, payload: unknown) => applyInbox(state, { type, payload } as InboxEvent),
  ]),
) as unknown as Evolve;

/** Also removes merge windows that have ended. */
function advanceClock(state: InboxState, at: string): InboxState {
  const clockMs = Math.max(state.clockMs, Date.parse(at));
  const merges = Object.entries(state.merges);
  const open = merges.filter(([, { untilMs }]) => untilMs > clockMs);
  return {
    ...state,
    clockMs,
    merges: open.length === merges.length ? state.merges : Object.fromEntries(open),
  };
}

function removeHeld(
  state: InboxState,
  { notificationId }: Pick<Notice, 'notificationId'>,
): InboxState {
  const held = state.held.filter((each) => each.notificationId !== notificationId);
  return held.length === state.held.length ? state : { ...state, held };
}

function openMerge(state: InboxState, notice: Notice, heldUntilMs = 0): InboxState {
  const { category, key, mergeMs = limits.mergeMsDefault, notificationId, count } = notice;
  if (key === undefined) return state;
  // Notifications that are held together merge, however long they are held.
  const untilMs = Math.max(state.clockMs + mergeMs, heldUntilMs);
  const slot = mergeSlot(category, key);
  const merges = put(without(state.merges, slot), slot, { notificationId, untilMs, count });
  return { ...state, merges: latest(merges, limits.mergesMax) };
}

function remember(
  state: InboxState,
  { notificationId, origin }: Pick<Notice, 'notificationId' | 'origin'>,
  part: Pick<RecentNotification, 'digestId' | 'mergedInto'> = {},
): InboxState {
  const entry = entryOf(state.recent, notificationId) ?? {
    isAcknowledged: false,
    ...present({ origin }),
    ...part,
  };
  const recent = put(without(state.recent, notificationId), notificationId, entry);
  return { ...state, recent: latest(recent, limits.recentMax) };
}

function withItem(digest: OpenDigest, title: string, key: string | undefined): OpenDigest {
  const { items } = digest;
  const count = digest.count + 1;
  const similar = key === undefined ? -1 : items.findIndex((each) => each.key === key);
  if (similar >= 0) {
    const more = (each: DigestItem): DigestItem => ({ ...each, title, count: each.count + 1 });
    return {
      ...digest,
      count,
      items: items.map((each, at) => (at === similar ? more(each) : each)),
    };
  }
  if (items.length >= limits.digestItemsMax) return { ...digest, count };
  const item = present({ title, count: 1, key });
  return { ...digest, count, items: [...items, item] };
}

/** Notifications of different categories never merge. */
export function mergeSlot(category: Category, key: string): string {
  return `${category} ${key}`;
}

/** The prefix makes keys such as `__proto__`, and numbers (which objects sort first), ordinary keys. */
function slotOf(name: string): string {
  return `=${name}`;
}

export function entryOf<Entry>(book: Book<Entry>, name: string): Entry | undefined {
  return book[slotOf(name)];
}

function put<Entry>(book: Book<Entry>, name: string, entry: Entry): Book<Entry> {
  return { ...book, [slotOf(name)]: entry };
}

function mapBook<Entry>(book: Book<Entry>, change: (entry: Entry) => Entry): Book<Entry> {
  return Object.fromEntries(Object.entries(book).map(([slot, entry]) => [slot, change(entry)]));
}

function without<Entry>(book: Book<Entry>, name: string): Book<Entry> {
  if (entryOf(book, name) === undefined) return book;
  const { [slotOf(name)]: _gone, ...rest } = book;
  return rest;
}

function latest<Entry>(book: Book<Entry>, max: number): Book<Entry> {
  const entries = Object.entries(book);
  return entries.length <= max ? book : Object.fromEntries(entries.slice(-max));
}
