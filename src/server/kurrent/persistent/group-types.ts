// The inputs and effects of a group's core.

import type { Pin } from './consumer-strategy.ts';
import type { GroupSettings } from './group-settings.ts';

export interface Message<T> {
  /** The id in acknowledgements. */
  readonly id: string;
  /** The increasing number of the message in the source. */
  readonly at: number;
  readonly pin: Pin;
  readonly content: T;
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

export type CoreSettings = Pick<
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
    readonly waiting: number;
    readonly retrying: number;
    readonly inFlight: number;
    readonly parking: number;
    readonly checkpoint: number;
    readonly delivered: number;
    readonly consumers: readonly ConsumerStats[];
  };
}
