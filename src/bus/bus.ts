// The port of the bus: subjects with durable streams, on Redis Streams, NATS JetStream or a file.
//
// A stream contains the messages of one full subject, in order. A group is a durable reader of a subject or a pattern:
// each message is leased to one of its members until it is acked. Groups are independent, so several groups on one
// subject fan out. Delivery is at least once.

import type { BusDeadLetter } from './dead-letter.ts';
import type { BusMessage, Delivery, NewMessage, Published } from './bus-message.ts';

/** Where engines differ; the conformance suite skips cases by these names. */
export interface BusCapabilities {
  /** Survives a restart of the broker. */
  readonly durable: boolean;
  /** Several processes share the bus. */
  readonly crossProcess: boolean;
  /** `publishMany` stores all messages or none. */
  readonly atomicBatch: boolean;
  /** An ack after the lease expired and another member got the message changes nothing and returns `stale`. */
  readonly fencedAcks: boolean;
  /** One order over all subjects: a reader of a pattern can continue after a message (`position`). */
  readonly patternPositions: boolean;
  /** Releasing a message before its handler starts does not count as a delivery. */
  readonly uncountedRelease: boolean;
  /** `pending` lists the pending messages. */
  readonly pendingList: boolean;
  /** Reports the size of a stream in bytes, and can trim by it. */
  readonly streamBytes: boolean;
}

/**
 * `start`: all existing messages. `end`: only new messages. `time`: stored then or later, by the broker's clock.
 * `sequence`: this message and later ones (one full subject only). `position`: after this message
 * (`patternPositions`).
 */
export type StartFrom =
  | 'start'
  | 'end'
  | { readonly time: Date }
  | { readonly sequence: string }
  | { readonly position: string };

export interface GroupDefinition {
  /** Letters, digits, `_` and `-`, such as `email-send-workers`. One name, one subject or pattern. */
  readonly group: string;
  /** A full subject, or a pattern with `*` and `>`. */
  readonly subject: string;
  /** Where a new group starts. Default: `start`. */
  readonly from?: StartFrom | undefined;
  /** A message that is not settled or renewed within this time is delivered again. Default: 15 s. */
  readonly leaseMs?: number | undefined;
  /** After this many deliveries a message becomes a dead letter. Default: 10. */
  readonly maxDeliveries?: number | undefined;
  /** Unacked messages of the whole group. 1: strictly in order. Default: 1,000. */
  readonly maxAckPending?: number | undefined;
}

export interface FetchOptions {
  /** Default: 1. */
  readonly limit?: number | undefined;
  /** How long to wait for the first message. Default: 5 s; 0: do not wait. */
  readonly waitMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A member of a group that fetches on demand; `consume` runs a loop instead. */
export interface BusGroup {
  readonly name: string;
  readonly subject: string;
  /**
   * Leases messages. Malformed messages, and those over `maxDeliveries`, become dead letters and are left out. The
   * list is empty if no message arrives in time.
   */
  fetch(options?: FetchOptions): Promise<readonly Delivery[]>;
  /** Acks several messages in one round trip. */
  ack(deliveries: readonly Delivery[]): Promise<void>;
}

/**
 * When the handler resolves, the message is acked unless the handler has settled it. `Terminal` makes it a dead letter;
 * `RetryAfter` and `Snooze` redeliver it after their delay; any other error redelivers it after the backoff.
 */
export type MessageHandler<Payload = unknown> = (
  message: Delivery<Payload>,
  signal: AbortSignal,
) => void | Promise<void>;

export interface ConsumeOptions {
  /** Concurrent handlers. 1 handles messages in the order of delivery. Default: 1. */
  readonly concurrency?: number | undefined;
  /** Messages leased by this consumer, running or queued. Default: 100, at least `concurrency`. */
  readonly maxInFlight?: number | undefined;
  /** The delay before the n-th redelivery after a failure. Default: 1, 2, 4 … 60 s. */
  readonly backoffMs?: ((failures: number) => number) | undefined;
  /** Renews leases automatically; if false, the handler calls `inProgress`. Default: true. */
  readonly autoExtend?: boolean | undefined;
  /** Aborting it is the same as `stop()`. */
  readonly signal?: AbortSignal | undefined;
}

export interface BusConsumer extends AsyncDisposable {
  readonly group: string;
  /** Resolves when the consumer has stopped; rejects on a permanent error (its group has another pattern). */
  readonly done: Promise<void>;
  /** Stops fetching, releases queued messages, and resolves when the running handlers are settled. */
  stop(): Promise<void>;
}

export interface SubscribeOptions {
  /** Default: `end`. */
  readonly from?: StartFrom | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions {
  /** Default: `start`. */
  readonly from?: StartFrom | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A live reader without stored state. Its loop ends when it is disposed or its signal fires. */
export interface BusSubscription extends AsyncIterable<BusMessage>, AsyncDisposable {
  /** Returns the messages in batches of at least one, as an alternative to the loop over single messages. */
  batches(): AsyncIterable<readonly BusMessage[]>;
}

/** One entry of a stream as stored, well-formed or not. */
export interface StoredMessage {
  readonly subject: string;
  readonly sequence: string;
  readonly storedAt: Date;
  readonly data: Uint8Array;
}

export interface RequestOptions {
  /** Default: 10 s; then `BUS_NO_REPLY`, and the request expires. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The progress of a group in one stream. */
export interface StreamGroup {
  readonly name: string;
  /** Messages that are not delivered yet. */
  readonly lag: number;
  /** Messages that are delivered and not acked. */
  readonly pending: number;
}

export interface StreamInfo {
  readonly subject: string;
  readonly length: number;
  /** Undefined if the stream is empty. */
  readonly firstSequence: string | undefined;
  /** Undefined if the stream is empty. */
  readonly lastSequence: string | undefined;
  readonly firstStoredAt: Date | undefined;
  readonly lastStoredAt: Date | undefined;
  /** Approximate, including overhead of the engine; undefined without `streamBytes`. */
  readonly bytes: number | undefined;
  /** Groups whose pattern matches this subject. */
  readonly groups: readonly StreamGroup[];
}

export interface GroupInfo {
  readonly name: string;
  readonly subject: string;
  readonly leaseMs: number;
  readonly maxAckPending: number;
  /** Sum over all streams of the group. */
  readonly lag: number;
  readonly pending: number;
}

export interface PendingMessage {
  readonly subject: string;
  readonly sequence: string;
  readonly deliveryCount: number;
  /** The time of the next possible delivery: when the lease or delay expires. */
  readonly availableAt: Date;
}

export interface TrimOrder {
  /** Removes messages stored before this time. */
  readonly storedBefore?: Date | undefined;
  /** Removes messages with a lower sequence. */
  readonly beforeSequence?: string | undefined;
  /** Removes the oldest messages until this many are left. */
  readonly lengthMax?: number | undefined;
  /** Removes the oldest messages until at most this many bytes are left (`streamBytes`). */
  readonly bytesMax?: number | undefined;
  /** Also removes messages that a group has not acked; the group never gets them. */
  readonly evenUnacked?: boolean | undefined;
}

export interface Trimmed {
  readonly removed: number;
  /** Messages that match but stay, because a group has not acked them. */
  readonly heldBack: number;
}

export interface StreamPage {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

export interface DeadLetterPage {
  /** The sequence of the last dead letter on the previous page. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
  /** The page ends with the dead letter whose message reaches this size. Default: no limit. */
  readonly bytesMax?: number | undefined;
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

  /** Resolves when the message is stored. After `BUS_UNAVAILABLE`, repeat the call with the same id. */
  publish(message: NewMessage): Promise<Published>;
  /** Stores in order, in as few round trips as possible. All messages are checked before any is stored. */
  publishMany(messages: readonly NewMessage[]): Promise<readonly Published[]>;

  /** Joins a group; creates it if it does not exist. */
  group(definition: GroupDefinition): Promise<BusGroup>;
  /** Runs a handler for the messages of a group until it is stopped; resumes after an outage of the broker. */
  consume<Payload = unknown>(
    definition: GroupDefinition,
    handler: MessageHandler<Payload>,
    options?: ConsumeOptions,
  ): Promise<BusConsumer>;

  /** Live, without a group: every subscriber gets every message. Malformed messages are skipped and logged. */
  subscribe(pattern: string, options?: SubscribeOptions): Promise<BusSubscription>;
  /** Reads the existing messages, then ends. */
  read(pattern: string, options?: ReadOptions): AsyncIterable<BusMessage>;
  /** Like `read`, but undecoded, for archives. */
  readStored(pattern: string, options?: ReadOptions): AsyncIterable<StoredMessage>;

  /**
   * Publishes a request and waits for the reply of a consumer of the subject (`Delivery.reply`). The request is an
   * ordinary message that expires with the timeout.
   */
  request(message: NewMessage, options?: RequestOptions): Promise<BusMessage>;

  stream(subject: string): Promise<StreamInfo | undefined>;
  /** Ordered by subject. `>` matches all subjects except system subjects. */
  streams(pattern: string, page?: StreamPage): Promise<readonly StreamInfo[]>;
  /** Removes the oldest messages, but none that a group has not acked. */
  trim(subject: string, order: TrimOrder): Promise<Trimmed>;
  /**
   * Removes the stream. Rejects with `BUS_STREAM_HELD` if a group has not acked all of it, unless `evenUnacked`.
   * Groups stay, and get messages that are published later.
   */
  deleteStream(
    subject: string,
    options?: { readonly evenUnacked?: boolean | undefined },
  ): Promise<boolean>;

  groups(): Promise<readonly GroupInfo[]>;
  /** Oldest first (`pendingList`). */
  pending(group: string, limit?: number): Promise<readonly PendingMessage[]>;
  /** Moves the group; current deliveries become stale. `sequence` needs a group on a full subject. */
  seek(group: string, to: StartFrom): Promise<void>;
  /** Stop its consumers first: a running consumer creates the group again. */
  deleteGroup(group: string): Promise<boolean>;

  /** Oldest first. */
  deadLetters(group: string, page?: DeadLetterPage): Promise<readonly BusDeadLetter[]>;
  /** Delivers them to this group only, with a new delivery count. Returns how many. */
  replayDeadLetters(group: string, sequences: readonly string[]): Promise<number>;
  discardDeadLetters(group: string, sequences: readonly string[]): Promise<number>;
}
