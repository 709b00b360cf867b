// The messages of the PersistentSubscriptions service.

import type { Long } from '../protocol/wire-number.ts';
import type {
  Empty,
  WireAllOptions,
  WireFilter,
  WireReadEvent,
  WireStreamIdentifier,
  WireStreamOptions,
  WireUuid,
  WireUuidOption,
} from '../protocol/wire-types.ts';

type Maybe<T> = T | undefined;

/** The group of a request. */
export interface WireGroup {
  readonly streamIdentifier?: Maybe<WireStreamIdentifier>;
  readonly all?: Maybe<Empty>;
  readonly groupName: string;
}

export interface WireSettings {
  readonly resolveLinks: boolean;
  readonly revision: Long;
  readonly extraStatistics: boolean;
  readonly messageTimeoutTicks?: Maybe<Long>;
  readonly messageTimeoutMs?: Maybe<number>;
  readonly checkpointAfterTicks?: Maybe<Long>;
  readonly checkpointAfterMs?: Maybe<number>;
  readonly maxRetryCount: number;
  readonly minCheckpointCount: number;
  readonly maxCheckpointCount: number;
  readonly maxSubscriberCount: number;
  readonly liveBufferSize: number;
  readonly readBatchSize: number;
  readonly historyBufferSize: number;
  readonly namedConsumerStrategy: number;
  readonly consumerStrategy: string;
}

export interface WireWriteRequest {
  readonly options?: Maybe<{
    readonly streamIdentifier?: Maybe<WireStreamIdentifier>;
    readonly groupName: string;
    readonly settings?: Maybe<WireSettings>;
    readonly stream?: Maybe<WireStreamOptions>;
    readonly all?: Maybe<WireAllOptions & { readonly filter?: Maybe<WireFilter> }>;
  }>;
}

export interface WireGroupRequest {
  readonly options?: Maybe<WireGroup>;
}

export interface WireReplayRequest {
  readonly options?: Maybe<WireGroup & { readonly stopAt?: Maybe<Long> }>;
}

export interface WireListRequest {
  readonly options?: Maybe<{
    readonly listForStream?: Maybe<{
      readonly stream?: Maybe<WireStreamIdentifier>;
      readonly all?: Maybe<Empty>;
    }>;
  }>;
}

export interface WireGroupReadRequest {
  readonly options?: Maybe<
    WireGroup & { readonly bufferSize: number; readonly uuidOption?: Maybe<WireUuidOption> }
  >;
  readonly ack?: Maybe<{ readonly ids: readonly WireUuid[] }>;
  readonly nack?: Maybe<{
    readonly ids: readonly WireUuid[];
    readonly action: number;
    readonly reason: string;
  }>;
}

export interface WireGroupReadResponse {
  readonly event?: Maybe<WireReadEvent & { readonly retryCount?: number }>;
  readonly subscriptionConfirmation?: Maybe<{ readonly subscriptionId: string }>;
}
