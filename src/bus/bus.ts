// The port: subjects with streams behind them, on Redis Streams, NATS JetStream or a file.
//
// A stream is what was published to one full subject, in order. A group is a durable reader over a
// subject or a pattern: each message goes to one of its members, under a lease, until it is acked. Two
// groups know nothing of each other: that is how one fans out. Delivery is at least once.

import type { BusDeadLetter } from './dead-letter.ts';
import type { BusMessage, Delivery, NewMessage, Published } from './bus-message.ts';

/** Where engines truly differ; the suite skips what one does not have, by these names. */
export interface BusCapabilities {
  /** Survives a restart of the broker. */
  readonly durable: boolean;
  /** Other processes have the same bus. */
  readonly crossProcess: boolean;
  /** `publishMany` stores all or none. */
  readonly atomicBatch: boolean;
  /** A late ack, after the lease ran out and the message went to another, changes nothing and is told. */
  readonly fencedAcks: boolean;
  /** One order for all subjects: a reader of a pattern can go on behind a message (`position`). */
  readonly patternPositions: boolean;
  /** A message that was given back untouched has not used up a delivery. */
  readonly uncountedRelease: boolean;
  /** Tells which messages are pending, not only how many. */
  readonly pendingList: boolean;
  /** Knows the bytes of a stream, and trims by them. */
  readonly streamBytes: boolean;
}

/**
 * `start`: everything that is there. `now`: only what comes. `time`: stored then or later, by the
 * broker's clock. `sequence`: from this one on, it included (one full subject only). `position`: behind
 * this one (`patternPositions`).
 */
export type StartFrom =
  | 'start'
  | 'now'
  | { readonly time: Date }
  | { readonly sequence: string }
  | { readonly position: string };

export interface GroupDefinition {
  /** Letters, digits, `_` and `-`, such as `email-send-workers`. One name, one subject or pattern. */
  readonly group: string;
  /** A full subject, or a pattern with `*` and `>`. */
  readonly subject: string;
  /** For a group that is new. Default: `start`, so that nothing is skipped. */
  readonly start?: StartFrom | undefined;
  /** Whoever neither settles nor says `inProgress` for so long has lost the message. Default: 30 s. */
  readonly leaseMs?: number | undefined;
  /** Then it goes to the dead letters. Default: 10. */
  readonly maxDeliveries?: number | undefined;
  /** Of the whole group, over all members. 1: strictly in order. Default: 1,000. */
  readonly maxAckPending?: number | undefined;
}

export interface FetchOptions {
  /** Default: 1. */
  readonly limit?: number | undefined;
  /** How long to wait for the first one. Default: 5 s; 0: what is there now. */
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A member of a group, for whoever wants to pull by hand; `consume` does it in a loop. */
export interface BusGroup {
  readonly name: string;
  readonly subject: string;
  /**
   * Leases messages. What is malformed, or was handed out too often, is not among them: it has gone to
   * the dead letters. Nothing in time: an empty list.
   */
  fetch(options?: FetchOptions): Promise<readonly Delivery[]>;
  /** Acks many in one round trip. */
  ack(deliveries: readonly Delivery[]): Promise<void>;
}

/**
 * Resolves: ack, unless it has settled the message itself. Throws `Terminal`: dead letter; `RetryAfter` or
 * `Snooze`: again after that; anything else: again after the consumer's backoff.
 */
export type MessageHandler<Payload = unknown> = (
  message: Delivery<Payload>,
  signal: AbortSignal,
) => void | Promise<void>;

export interface ConsumeOptions {
  /** Handlers at once. 1 handles in the order of delivery. Default: 1. */
  readonly concurrency?: number | undefined;
  /** Leased by this consumer at once, handled or waiting. Default: 100, at least `concurrency`. */
  readonly maxInFlight?: number | undefined;
  /** The wait before the n-th redelivery after a failure. Default: 1, 2, 4 … 60 s. */
  readonly backoffMs?: ((failures: number) => number) | undefined;
  /** The consumer renews the leases of what it holds; false: the handler says `inProgress`. Default: true. */
  readonly autoExtend?: boolean | undefined;
  /** Fires: as `stop()`. */
  readonly signal?: AbortSignal | undefined;
}

export interface BusConsumer extends AsyncDisposable {
  readonly group: string;
  /** Resolves when it has ended; rejects when it could not go on (its group has another pattern). */
  readonly done: Promise<void>;
  /** Takes no more, gives back what no handler has begun, and resolves when those that have are settled. */
  stop(): Promise<void>;
}

export interface SubscribeOptions {
  /** Default: `now`. */
  readonly from?: StartFrom | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions {
  /** Default: `start`. */
  readonly from?: StartFrom | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A live reader that leaves nothing behind. Its loop ends when it is disposed or its signal fires. */
export interface BusSubscription extends AsyncIterable<BusMessage>, AsyncDisposable {
  /** The same, in place of the loop over single ones: what is there goes out together, at least one. */
  batches(): AsyncIterable<readonly BusMessage[]>;
}

/** One message exactly as it stands in its stream, well-formed or not. */
export interface StoredMessage {
  readonly subject: string;
  readonly sequence: string;
  readonly storedAt: Date;
  readonly data: Uint8Array;
}

export interface RequestOptions {
  /** Default: 10 s; then `BUS_NO_REPLY`. The request expires with it. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How far a group is in one stream. */
export interface StreamGroup {
  readonly name: string;
  /** Not handed out yet. */
  readonly lag: number;
  /** Handed out, and not acked. */
  readonly pending: number;
}

export interface StreamInfo {
  readonly subject: string;
  readonly length: number;
  /** Undefined while it is empty. */
  readonly firstSequence: string | undefined;
  /** Of the last one that is there; undefined while it is empty. */
  readonly lastSequence: string | undefined;
  readonly firstStoredAt: Date | undefined;
  readonly lastStoredAt: Date | undefined;
  /** About, with what the engine stores around it; undefined without `streamBytes`. */
  readonly bytes: number | undefined;
  /** Those whose pattern takes this subject. */
  readonly groups: readonly StreamGroup[];
}

export interface GroupInfo {
  readonly name: string;
  readonly subject: string;
  readonly leaseMs: number;
  readonly maxAckPending: number;
  /** Over all its streams. */
  readonly lag: number;
  readonly pending: number;
}

export interface PendingMessage {
  readonly subject: string;
  readonly sequence: string;
  readonly deliveryCount: number;
  /** When it may be handed out again: the end of its lease, or of its delay. */
  readonly availableAt: Date;
}

export interface TrimOrder {
  /** Stored before this. */
  readonly storedBefore?: Date | undefined;
  /** Lower than this one. */
  readonly beforeSequence?: string | undefined;
  /** The oldest, until so many are left. */
  readonly lengthMax?: number | undefined;
  /** The oldest, until no more than so many bytes are left (`streamBytes`). */
  readonly bytesMax?: number | undefined;
  /** Also what a group has not acked yet: those messages are lost to it. */
  readonly evenUnacked?: boolean | undefined;
}

export interface Trimmed {
  readonly removed: number;
  /** Was to go, and stayed because a group has not acked it. */
  readonly heldBack: number;
}

export interface StreamPage {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface DeadLetterPage {
  /** The sequence of the last one of the page before. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * The bus.
 *
 * @example
 * import type { Bus } from 'millrace/bus';
 *
 * async function sendOne(bus: Bus) {
 *   await bus.publish({ subject: 'gbe.tasks.email-send.queue', payload: { taskId: 't1' } });
 *   await using workers = await bus.consume(
 *     { group: 'email-send-workers', subject: 'gbe.tasks.email-send.queue' },
 *     async (message) => console.log(message.payload, message.deliveryCount),
 *   );
 *   await workers.stop();
 * }
 */
export interface Bus extends AsyncDisposable {
  readonly capabilities: BusCapabilities;

  /** Resolves when it is stored. Rejects with `BUS_UNAVAILABLE`: repeat it with the same id. */
  publish(message: NewMessage): Promise<Published>;
  /** In order, in as few round trips as the engine can. All are checked before any is stored. */
  publishMany(messages: readonly NewMessage[]): Promise<readonly Published[]>;

  /** A member of a group; the group is made where it is missing. */
  group(definition: GroupDefinition): Promise<BusGroup>;
  /** Runs a handler over a group, for ever: it resumes by itself when the broker comes back. */
  consume<Payload = unknown>(
    definition: GroupDefinition,
    handler: MessageHandler<Payload>,
    options?: ConsumeOptions,
  ): Promise<BusConsumer>;

  /** Live, without a group: every subscriber gets everything. What is malformed is told to the Observer. */
  subscribe(pattern: string, options?: SubscribeOptions): Promise<BusSubscription>;
  /** What is there now, then it ends. */
  read(pattern: string, options?: ReadOptions): AsyncIterable<BusMessage>;
  /** As `read`, undecoded: for archives. */
  readStored(pattern: string, options?: ReadOptions): AsyncIterable<StoredMessage>;

  /**
   * Publishes a request and waits for what a consumer of the subject answers (`Delivery.reply`). The
   * request is a message like others: it waits for a consumer, and is dropped when its time is over.
   */
  request(message: NewMessage, options?: RequestOptions): Promise<BusMessage>;

  stream(subject: string): Promise<StreamInfo | undefined>;
  /** By subject. `>` has all but system subjects. */
  streams(pattern: string, page?: StreamPage): Promise<readonly StreamInfo[]>;
  /** Removes from the old end. Never what a group whose pattern takes the subject has not acked. */
  trim(subject: string, order: TrimOrder): Promise<Trimmed>;
  /**
   * Removes the stream. A group has not acked all of it: `BUS_STREAM_HELD`, unless `evenUnacked`. Groups
   * stay, and get what is published later.
   */
  deleteStream(
    subject: string,
    options?: { readonly evenUnacked?: boolean | undefined },
  ): Promise<boolean>;

  groups(): Promise<readonly GroupInfo[]>;
  /** Oldest first (`pendingList`). */
  pending(group: string, limit?: number): Promise<readonly PendingMessage[]>;
  /** The group goes on from there; what was handed out is forgotten. `sequence` counts for a full subject. */
  seek(group: string, to: StartFrom): Promise<void>;
  /** Stop its consumers first: one that runs makes it anew. */
  deleteGroup(group: string): Promise<boolean>;

  /** Oldest first. */
  deadLetters(group: string, page?: DeadLetterPage): Promise<readonly BusDeadLetter[]>;
  /** Hands them to the group again, and to no other, with all deliveries ahead. Returns how many. */
  replayDeadLetters(group: string, sequences: readonly string[]): Promise<number>;
  discardDeadLetters(group: string, sequences: readonly string[]): Promise<number>;
}
