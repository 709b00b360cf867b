// The decisions of a persistent subscription: dispatch, retries, parking and checkpoints. Pure: inputs are calls with
// the current time, outputs are effects in order.

import {
  createStrategy,
  type Candidate,
  type ConsumerStrategy,
  type Pin,
} from './consumer-strategy.ts';
import type { GroupSettings } from './group-settings.ts';
import { createLedger, type Slot } from './ledger.ts';
import type { LinkTarget } from '../streams/resolve-links.ts';

export interface Message<T> {
  /** The id in acknowledgements. */
  readonly id: string;
  /** The increasing number of the message in the source. */
  readonly at: number;
  readonly pin: Pin;
  /** The event that is stored as the link of a parked message. */
  readonly target: LinkTarget;
  readonly content: T;
  /** The memory that the message needs until it is processed. */
  readonly bytes?: number;
}

export type Effect<T> =
  | {
      readonly kind: 'send';
      readonly consumer: string;
      readonly message: Message<T>;
      readonly retryCount: number;
    }
  /** Followed by a call of `parked` when the message is stored, or of `parkFailed`. */
  | { readonly kind: 'park'; readonly message: Message<T>; readonly reason: string }
  /** All messages up to this number are processed. */
  | { readonly kind: 'checkpoint'; readonly at: number }
  /** All replayed messages up to this one are processed. */
  | { readonly kind: 'unpark'; readonly upTo: number };

export type CoreSettings = {
  /** The number of the last message that was delivered before a restart. */
  readonly lastKnown?: number | undefined;
} & Pick<
  GroupSettings,
  | 'after'
  | 'strategy'
  | 'maxRetryCount'
  | 'messageTimeoutMs'
  | 'checkpointAfterMs'
  | 'minCheckpointCount'
  | 'maxCheckpointCount'
  | 'maxSubscriberCount'
>;

interface Replay<T> {
  readonly message: Message<T> | undefined;
  readonly parkedAt: number;
}

export type NackAction = 'park' | 'retry' | 'skip' | 'stop';

interface ConsumerStats {
  readonly id: string;
  readonly availableSlots: number;
  readonly inFlight: number;
  readonly delivered: number;
}

export interface GroupCore<T> {
  /** False: the group has the maximum number of consumers. */
  connect(id: string, bufferSize: number, nowMs: number): boolean;
  disconnect(id: string): void;
  /** A blocked consumer gets no messages. */
  block(id: string, blocked: boolean): void;
  /** Messages of the source, in its order. */
  push(messages: readonly Message<T>[]): void;
  /** The source has no other messages for this group up to this number. */
  passed(at: number): void;
  /** Parked messages to deliver again; `message` is undefined if its event was deleted. */
  replay(messages: readonly Replay<T>[]): void;
  ack(consumer: string, ids: readonly string[]): void;
  nack(consumer: string, ids: readonly string[], action: NackAction, reason: string): void;
  parked(id: string): void;
  parkFailed(id: string): void;
  tick(nowMs: number): void;
  /** The effects of all inputs since the last call. */
  effects(nowMs: number): readonly Effect<T>[];
  stats(): {
    /** The number of the last message that was delivered. */
    readonly lastKnown: number | undefined;
    readonly waiting: number;
    readonly retrying: number;
    readonly inFlight: number;
    readonly parking: number;
    /** The memory of all messages that are not processed: waiting, retrying, in flight and parking. */
    readonly bytes: number;
    readonly checkpoint: number;
    readonly delivered: number;
    readonly consumers: readonly ConsumerStats[];
  };
}

interface Entry<T> {
  readonly message: Message<T>;
  readonly retryCount: number;
  /** In the ledger of the source, or of the parked stream for replayed messages. */
  readonly slot: Slot;
  readonly replayed: boolean;
}

interface Flight<T> {
  readonly entry: Entry<T>;
  readonly consumer: string;
  readonly dueMs: number;
  /** Whether it counts for the buffer of the consumer. */
  holdsSlot: boolean;
}

interface Consumer extends Candidate {
  readonly bufferSize: number;
  inFlight: number;
  delivered: number;
  blocked: boolean;
}

export function createGroupCore<T>(settings: CoreSettings): GroupCore<T> {
  const strategy: ConsumerStrategy = createStrategy(settings.strategy);
  const consumers = new Map<string, Consumer>();
  const ledger = createLedger(settings.after);
  const replays = createLedger(-1);
  const fresh: Entry<T>[] = [];
  const retries: Entry<T>[] = [];
  const flights = new Map<string, Flight<T>>();
  const parking = new Map<string, Entry<T>>();
  let effects: Effect<T>[] = [];
  let delivered = 0;
  let bytes = 0;
  let checkpointed = settings.after;
  let checkpointedCount = 0;
  let checkpointedMs: number | undefined;
  let unparked = -1;
  let { lastKnown } = settings;

  const isKnown = (id: string): boolean => flights.has(id) || parking.has(id);

  /** Sends messages from the front of the queue; messages pinned to a busy consumer keep their order. */
  const dispatch = (queue: Entry<T>[], nowMs: number): void => {
    let undelivered = 0;
    let index = 0;
    for (; index < queue.length; index += 1) {
      const entry = queue[index];
      if (entry === undefined) break;
      const { message, retryCount } = entry;
      const choice = strategy.choose(consumers, message.pin);
      if (choice.kind === 'full') break;
      // An acknowledgement names only the id, so an id must not be in flight twice.
      if (choice.kind === 'busy' || isKnown(message.id)) {
        queue[undelivered] = entry;
        undelivered += 1;
        continue;
      }
      const consumer = consumers.get(choice.id);
      if (consumer === undefined) break;
      consumer.inFlight += 1;
      consumer.delivered += 1;
      delivered += 1;
      const { messageTimeoutMs } = settings;
      const dueMs = messageTimeoutMs === 0 ? Number.POSITIVE_INFINITY : nowMs + messageTimeoutMs;
      flights.set(message.id, { entry, consumer: choice.id, dueMs, holdsSlot: true });
      effects.push({ kind: 'send', consumer: choice.id, message, retryCount });
      if (!entry.replayed) lastKnown = Math.max(lastKnown ?? message.at, message.at);
    }
    queue.splice(undelivered, index - undelivered);
  };

  const land = (id: string, consumer: string | undefined): Entry<T> | undefined => {
    const flight = flights.get(id);
    // Ignore a late acknowledgement, because the message is in flight to another consumer.
    if (flight === undefined || (consumer !== undefined && flight.consumer !== consumer)) {
      return undefined;
    }
    flights.delete(id);
    const holder = consumers.get(flight.consumer);
    if (holder !== undefined && flight.holdsSlot) holder.inFlight -= 1;
    return flight.entry;
  };

  /** The message is retried when its consumer disconnects or when it times out; the consumer can get another one. */
  const release = (id: string, consumer: string): void => {
    const flight = flights.get(id);
    const holder = consumers.get(consumer);
    if (flight?.consumer !== consumer || !flight.holdsSlot || holder === undefined) return;
    holder.inFlight -= 1;
    flight.holdsSlot = false;
  };

  const finish = ({ message, slot, replayed }: Entry<T>): void => {
    bytes -= message.bytes ?? 0;
    (replayed ? replays : ledger).done(slot);
  };

  const park = (entry: Entry<T>, reason: string): void => {
    parking.set(entry.message.id, entry);
    effects.push({ kind: 'park', message: entry.message, reason });
  };

  const requeue = (entry: Entry<T>): void => {
    // Keep retried messages in the order of the source.
    const { at } = entry.message;
    const index = retries.findIndex(({ message }) => message.at > at);
    retries.splice(index === -1 ? retries.length : index, 0, entry);
  };

  const retry = (entry: Entry<T>, reason: string): void => {
    if (entry.retryCount >= settings.maxRetryCount) park(entry, reason);
    else requeue({ ...entry, retryCount: entry.retryCount + 1 });
  };

  const checkpoint = (nowMs: number, byTime: boolean): void => {
    const count = ledger.completed - checkpointedCount;
    if (count === 0 || ledger.upTo === checkpointed) return;
    const { checkpointAfterMs, minCheckpointCount, maxCheckpointCount } = settings;
    checkpointedMs ??= nowMs;
    const due =
      byTime && count >= minCheckpointCount && nowMs - checkpointedMs >= checkpointAfterMs;
    if (!due && count < Math.max(1, maxCheckpointCount)) return;
    checkpointed = ledger.upTo;
    checkpointedCount = ledger.completed;
    checkpointedMs = nowMs;
    effects.push({ kind: 'checkpoint', at: checkpointed });
  };

  return {
    connect(id, bufferSize, nowMs) {
      const { maxSubscriberCount } = settings;
      if (maxSubscriberCount > 0 && consumers.size >= maxSubscriberCount) return false;
      checkpointedMs ??= nowMs;
      consumers.set(id, {
        id,
        bufferSize: Math.max(1, bufferSize),
        inFlight: 0,
        delivered: 0,
        blocked: false,
        get room() {
          return this.blocked ? 0 : this.bufferSize - this.inFlight;
        },
      });
      strategy.add(id);
      return true;
    },
    disconnect(id) {
      if (!consumers.delete(id)) return;
      strategy.remove(id);
      for (const [message, flight] of flights) {
        if (flight.consumer !== id) continue;
        flights.delete(message);
        // A lost consumer counts as an attempt, but never parks the message.
        requeue({ ...flight.entry, retryCount: flight.entry.retryCount + 1 });
      }
    },
    block(id, blocked) {
      const consumer = consumers.get(id);
      if (consumer !== undefined) consumer.blocked = blocked;
    },
    push(messages) {
      for (const message of messages) {
        const slot = ledger.open(message.at);
        bytes += message.bytes ?? 0;
        fresh.push({ message, retryCount: 0, slot, replayed: false });
      }
    },
    passed(at) {
      ledger.done(ledger.open(at));
    },
    replay(messages) {
      for (const { message, parkedAt } of messages) {
        const slot = replays.open(parkedAt);
        if (message === undefined) replays.done(slot);
        else {
          bytes += message.bytes ?? 0;
          requeue({ message, retryCount: 0, slot, replayed: true });
        }
      }
    },
    ack(consumer, ids) {
      for (const id of ids) {
        const entry = land(id, consumer);
        if (entry !== undefined) finish(entry);
      }
    },
    nack(consumer, ids, action, reason) {
      for (const id of ids) {
        if (action === 'stop') {
          release(id, consumer);
          continue;
        }
        const entry = land(id, consumer);
        if (entry === undefined) continue;
        if (action === 'skip') finish(entry);
        else if (action === 'park') park(entry, reason);
        else retry(entry, reason);
      }
    },
    parked(id) {
      const entry = parking.get(id);
      if (entry === undefined) return;
      parking.delete(id);
      finish(entry);
    },
    parkFailed(id) {
      const entry = parking.get(id);
      if (entry === undefined) return;
      parking.delete(id);
      requeue(entry);
    },
    tick(nowMs) {
      for (const [id, { dueMs }] of flights) {
        // All messages have the same timeout, so they are due in the order of sending.
        if (dueMs > nowMs) break;
        const entry = land(id, undefined);
        if (entry !== undefined) retry(entry, 'the message was not acknowledged in time');
      }
      checkpoint(nowMs, true);
    },
    effects(nowMs) {
      dispatch(retries, nowMs);
      dispatch(fresh, nowMs);
      checkpoint(nowMs, false);
      if (replays.upTo > unparked) {
        unparked = replays.upTo;
        effects.push({ kind: 'unpark', upTo: unparked });
      }
      const due = effects;
      effects = [];
      return due;
    },
    stats: () => ({
      lastKnown,
      waiting: fresh.length,
      retrying: retries.length,
      inFlight: flights.size,
      parking: parking.size,
      bytes,
      checkpoint: ledger.upTo,
      delivered,
      consumers: [...consumers.values()].map(({ id, room, inFlight, delivered: count }) => ({
        id,
        availableSlots: Math.max(0, room),
        inFlight,
        delivered: count,
      })),
    }),
  };
}
