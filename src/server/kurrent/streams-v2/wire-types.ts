// The messages of version 2 of the Streams service.

import type { Long } from '../protocol/wire-number.ts';

type Maybe<T> = T | undefined;

export interface WireValue {
  readonly nullValue?: Maybe<number>;
  readonly numberValue?: Maybe<number>;
  readonly stringValue?: Maybe<string>;
  readonly boolValue?: Maybe<boolean>;
  readonly structValue?: Maybe<{ readonly fields: Readonly<Record<string, WireValue>> }>;
  readonly listValue?: Maybe<{ readonly values: readonly WireValue[] }>;
}

export interface WireRecord {
  readonly recordId?: Maybe<string>;
  readonly properties: Readonly<Record<string, WireValue>>;
  readonly schema?: Maybe<{ readonly format: number; readonly name: string }>;
  readonly data: Uint8Array;
  readonly stream: string;
}

export interface WireSessionRequest {
  readonly stream: string;
  readonly records: readonly WireRecord[];
  readonly expectedRevision?: Maybe<Long>;
}

export interface WireSessionResponse {
  readonly output: readonly {
    readonly stream: string;
    readonly streamRevision: number;
    readonly position: number;
  }[];
  readonly position: number;
}

export interface WireRecordsRequest {
  readonly records: readonly WireRecord[];
  readonly checks: readonly {
    readonly streamState?: Maybe<{ readonly stream: string; readonly expectedState: Long }>;
  }[];
}

export interface WireRecordsResponse {
  readonly revisions: readonly { readonly stream: string; readonly revision: number }[];
  readonly position: number;
}
