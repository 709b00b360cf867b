// A message as its producer gives it, and as its consumers get it.

import type { TraceContext } from '../foundation/observer.ts';

export interface NewMessage {
  /** One full subject, no wildcards. */
  readonly subject: string;
  /** A JSON value; with a content type that is not JSON, a `Uint8Array`. */
  readonly payload: unknown;
  /**
   * Names the message: a second publish with the same id to the same subject, within the dedupe
   * window, stores nothing. Default: a new one.
   */
  readonly id?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly tenant?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly causationId?: string | undefined;
  readonly trace?: TraceContext | undefined;
  /** Default: `application/json`. */
  readonly contentType?: string | undefined;
  readonly schemaVersion?: number | undefined;
  /**
   * When readers see the message in a bus file. `synced` (default): after it is on disk. `relaxed`: after its
   * commit, which a power loss within the next milliseconds may undo. `publish` resolves once the message is on
   * disk, with either value. Redis and NATS ignore this field: their own settings decide.
   */
  readonly durability?: MessageDurability | undefined;
}

export type MessageDurability = 'synced' | 'relaxed';

export interface Published {
  readonly id: string;
  readonly subject: string;
  /** Of a duplicate: that of the first one. */
  readonly sequence: string;
  /** True: the id had been published to this subject before; nothing was written now. */
  readonly isDuplicate: boolean;
}

export interface BusMessage<Payload = unknown> {
  readonly id: string;
  readonly subject: string;
  /**
   * Where it stands in its subject's stream. Opaque, but for `compareSequences`; it has gaps. Those of
   * two subjects say nothing about each other.
   */
  readonly sequence: string;
  /**
   * Where a reader of a pattern goes on behind it (`from: { position }`), on engines that have one
   * order for all subjects (`patternPositions`). Opaque.
   */
  readonly position: string | undefined;
  /** The producer's clock. */
  readonly time: Date;
  /** The broker's clock. */
  readonly storedAt: Date;
  readonly headers: Readonly<Record<string, string>>;
  readonly tenant: string | undefined;
  readonly correlationId: string | undefined;
  readonly causationId: string | undefined;
  readonly trace: TraceContext | undefined;
  readonly contentType: string;
  readonly schemaVersion: number | undefined;
  /** Where the answer is awaited; see `Delivery.reply`. */
  readonly replyTo: string | undefined;
  /** A JSON value, or a `Uint8Array` where the content type is not JSON. */
  readonly payload: Payload;
}

/**
 * `stale`: the lease had run out and the message was handed out again, or it was settled before;
 * nothing was changed. Engines without `fencedAcks` cannot tell, and say `settled`.
 */
export type SettleOutcome = 'settled' | 'stale';

/** A message under a lease, of one member of a group. The first call that settles it counts. */
export interface Delivery<Payload = unknown> extends BusMessage<Payload> {
  readonly group: string;
  /** 1 when it is handed out for the first time. */
  readonly deliveryCount: number;
  /** Done: no member of the group gets it again. */
  ack(): Promise<SettleOutcome>;
  /**
   * Not done: handed out again, at once or after the delay. After the group's last allowed delivery it
   * goes to the dead letters instead, with the reason.
   */
  nack(options?: {
    readonly delayMs?: number | undefined;
    readonly reason?: string | undefined;
  }): Promise<SettleOutcome>;
  /** Still at it: the lease begins anew. */
  inProgress(): Promise<SettleOutcome>;
  /** No delivery can help: straight to the dead letters. */
  term(reason: string): Promise<SettleOutcome>;
  /** Answers a request. Rejects with `BUS_INVALID` where nobody awaits an answer. */
  reply(payload: unknown): Promise<void>;
}
