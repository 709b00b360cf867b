// What a group's core is told and what it asks for.

import type { Pin, StrategyName } from './consumer-strategy.ts';

export interface Message<T> {
  /** What consumers acknowledge it by. */
  readonly id: string;
  /** Its number in the source; grows. */
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
  /** To be answered by `parked` once it is durable, or by `parkFailed`. */
  | { readonly kind: 'park'; readonly message: Message<T>; readonly reason: string }
  /** Everything up to here is done with. */
  | { readonly kind: 'checkpoint'; readonly at: number }
  /** Parked messages up to this one were replayed and are done with. */
  | { readonly kind: 'unpark'; readonly upTo: number };

export interface CoreSettings {
  readonly after: number;
  readonly strategy: StrategyName;
  readonly maxRetryCount: number;
  /** 0: never. */
  readonly messageTimeoutMs: number;
  readonly checkpointAfterMs: number;
  readonly minCheckpointCount: number;
  readonly maxCheckpointCount: number;
  /** 0: no bound. */
  readonly maxSubscriberCount: number;
}

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
  /** False: the group has as many consumers as it may. */
  connect(id: string, bufferSize: number, nowMs: number): boolean;
  disconnect(id: string): void;
  /** A consumer that does not drain gets nothing until it does. */
  block(id: string, blocked: boolean): void;
  /** From the source, in its order. */
  push(messages: readonly Message<T>[]): void;
  /** The source was looked at up to here, and there was nothing else for this group. */
  passed(at: number): void;
  /** Messages that were parked, again; what is gone meanwhile has none. */
  replay(messages: readonly Replay<T>[]): void;
  ack(consumer: string, ids: readonly string[]): void;
  nack(consumer: string, ids: readonly string[], action: NackAction, reason: string): void;
  parked(id: string): void;
  parkFailed(id: string): void;
  tick(nowMs: number): void;
  /** What is to be done since the last call, for all inputs so far. */
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
