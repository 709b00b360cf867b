// The messages of the codecs; absent members are undefined.

import type { Long } from './wire-number.ts';

type Maybe<T> = T | undefined;
export type Empty = Readonly<Record<string, never>>;
export const empty: Empty = {};

/** Encoders accept numbers, decoders return Longs. */
type WireInt = number | Long;

export interface WireUuid {
  readonly structured?: Maybe<{
    readonly mostSignificantBits: WireInt;
    readonly leastSignificantBits: WireInt;
  }>;
  readonly string?: Maybe<string>;
}

export interface WireStreamIdentifier {
  readonly streamName: Uint8Array;
}

export interface WirePosition {
  readonly commitPosition: WireInt;
  readonly preparePosition: WireInt;
}

export interface WireTime {
  readonly seconds: WireInt;
  readonly nanos: number;
}

export interface WireExpression {
  readonly regex: string;
  readonly prefix: readonly string[];
}

export interface WireFilter {
  readonly streamIdentifier?: Maybe<WireExpression>;
  readonly eventType?: Maybe<WireExpression>;
  readonly max?: Maybe<number>;
  readonly checkpointIntervalMultiplier: number;
}

export interface WireUuidOption {
  readonly structured?: Maybe<Empty>;
  readonly string?: Maybe<Empty>;
}

export interface WireRecordedEvent {
  readonly id: WireUuid;
  readonly streamIdentifier: WireStreamIdentifier;
  readonly streamRevision: number;
  readonly preparePosition: number;
  readonly commitPosition: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly customMetadata: Uint8Array;
  readonly data: Uint8Array;
}

export interface WireReadEvent {
  readonly event?: Maybe<WireRecordedEvent>;
  readonly link?: Maybe<WireRecordedEvent>;
  readonly commitPosition?: Maybe<number>;
  readonly noPosition?: Maybe<Empty>;
}

export interface WireStreamOptions {
  readonly streamIdentifier?: Maybe<WireStreamIdentifier>;
  readonly revision?: Maybe<Long>;
  readonly start?: Maybe<Empty>;
  readonly end?: Maybe<Empty>;
}

export interface WireAllOptions {
  readonly position?: Maybe<WirePosition>;
  readonly start?: Maybe<Empty>;
  readonly end?: Maybe<Empty>;
}

export interface WireReadRequest {
  readonly options?: Maybe<{
    readonly stream?: Maybe<WireStreamOptions>;
    readonly all?: Maybe<WireAllOptions>;
    readonly readDirection: number;
    readonly resolveLinks: boolean;
    readonly count?: Maybe<Long>;
    readonly subscription?: Maybe<Empty>;
    readonly filter?: Maybe<WireFilter>;
    readonly uuidOption?: Maybe<WireUuidOption>;
  }>;
}

interface WireProgress {
  readonly timestamp: WireTime;
  readonly streamRevision?: Maybe<number>;
  readonly position?: Maybe<WirePosition>;
}

export interface WireReadResponse {
  readonly event?: Maybe<WireReadEvent>;
  readonly confirmation?: Maybe<{ readonly subscriptionId: string }>;
  readonly checkpoint?: Maybe<WirePosition & { readonly timestamp?: WireTime }>;
  readonly streamNotFound?: Maybe<{ readonly streamIdentifier: WireStreamIdentifier }>;
  readonly firstStreamPosition?: Maybe<number>;
  readonly lastStreamPosition?: Maybe<number>;
  readonly caughtUp?: Maybe<WireProgress>;
  readonly fellBehind?: Maybe<WireProgress>;
}

export interface WireProposed {
  readonly id?: Maybe<WireUuid>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly customMetadata: Uint8Array;
  readonly data: Uint8Array;
}

export interface WireExpected {
  readonly noStream?: Maybe<Empty>;
  readonly any?: Maybe<Empty>;
  readonly streamExists?: Maybe<Empty>;
}

interface WireAppendOptions extends WireExpected {
  readonly streamIdentifier?: Maybe<WireStreamIdentifier>;
  readonly revision?: Maybe<Long>;
}

export interface WireAppendRequest {
  readonly options?: Maybe<WireAppendOptions>;
  readonly proposedMessage?: Maybe<WireProposed>;
}

export interface WireAppendSuccess {
  readonly currentRevision?: Maybe<number>;
  readonly noStream?: Maybe<Empty>;
  readonly position?: Maybe<WirePosition>;
}

export interface WireAppendResponse {
  readonly success?: Maybe<WireAppendSuccess>;
  readonly wrongExpectedVersion?: Maybe<Readonly<Record<string, number | Empty>>>;
}

export interface WireBatchRequest {
  readonly correlationId?: Maybe<WireUuid>;
  readonly options?: Maybe<
    WireExpected & {
      readonly streamIdentifier?: Maybe<WireStreamIdentifier>;
      readonly streamPosition?: Maybe<Long>;
      readonly deadlineAt?: Maybe<WireTime>;
      readonly deadlineIn?: Maybe<WireTime>;
    }
  >;
  readonly proposedMessages: readonly WireProposed[];
  readonly isFinal: boolean;
}

export interface WireStatus {
  readonly code: number;
  readonly message: string;
  readonly details?: Maybe<{ readonly typeUrl: string; readonly value: Uint8Array }>;
}

export interface WireBatchResponse extends WireExpected {
  readonly correlationId?: Maybe<WireUuid>;
  readonly error?: Maybe<WireStatus>;
  readonly success?: Maybe<WireAppendSuccess>;
  readonly streamIdentifier?: Maybe<WireStreamIdentifier>;
  readonly streamPosition?: Maybe<WireInt>;
}

export interface WireDeleteRequest {
  readonly options?: Maybe<WireAppendOptions>;
}

export interface WireDeleteResponse {
  readonly position?: Maybe<WirePosition>;
  readonly noPosition?: Maybe<Empty>;
}
