// A message as a producer passes it, and as a consumer receives it.

import type { TraceContext } from '../foundation/observer.ts';

export interface NewMessage {
  /** One full subject, no wildcards. */
  readonly subject: string;
  /** A JSON value; with a content type that is not JSON, a `Uint8Array`. */
  readonly payload: unknown;
  /**
   * A second publish with the same id to the same subject within the dedupe window stores nothing. Default: a new id.
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
}

export interface Published {
  readonly id: string;
  readonly subject: string;
  /** For a duplicate: the sequence of the first message. */
  readonly sequence: string;
  /** True if the id was already published to this subject; nothing was stored. */
  readonly isDuplicate: boolean;
}

export interface BusMessage<Payload = unknown> {
  readonly id: string;
  readonly subject: string;
  /**
   * The position in the stream of its subject. Opaque, with gaps; `compareSequences` orders the sequences of one subject.
   */
  readonly sequence: string;
  /**
   * Where a reader of a pattern continues (`from: { position }`), on engines with one order over all subjects
   * (`patternPositions`). Opaque.
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
  /** The subject for the reply to a request; see `Delivery.reply`. */
  readonly replyTo: string | undefined;
  /** A JSON value, or a `Uint8Array` if the content type is not JSON. */
  readonly payload: Payload;
}

/**
 * `stale`: nothing changed, because the message was already settled, or its lease expired and it was delivered again.
 * Engines without `fencedAcks` cannot detect this and return `settled`.
 */
export type SettleOutcome = 'settled' | 'stale';

/** A message leased to one member of a group. The first call that settles it counts. */
export interface Delivery<Payload = unknown> extends BusMessage<Payload> {
  readonly group: string;
  /** 1 for the first delivery. */
  readonly deliveryCount: number;
  /** Completes the message: no member of the group gets it again. */
  ack(): Promise<SettleOutcome>;
  /**
   * Requests a redelivery, at once or after the delay. After `maxDeliveries` the message becomes a dead letter with
   * this reason.
   */
  nack(options?: {
    readonly delayMs?: number | undefined;
    readonly reason?: string | undefined;
  }): Promise<SettleOutcome>;
  /** Renews the lease. */
  inProgress(): Promise<SettleOutcome>;
  /** Makes the message a dead letter at once. */
  term(reason: string): Promise<SettleOutcome>;
  /** Replies to a request. Rejects with `BUS_INVALID` if the message is not a request. */
  reply(payload: unknown): Promise<void>;
}
