// Messages of the Streams service, version 2: appends to several streams at once, and the details of its errors.

import { list, map, maybe, one, type Fields, type Recursive, type Wire } from './message.ts';

export interface WireValue {
  readonly numberValue?: number | undefined;
  readonly stringValue?: string | undefined;
  readonly boolValue?: boolean | undefined;
  readonly structValue?: { readonly fields: Readonly<Record<string, WireValue>> } | undefined;
  readonly listValue?: { readonly values: readonly WireValue[] } | undefined;
}

const value: Recursive<WireValue> = () => valueFields;
const valueFields: Fields = {
  numberValue: maybe(2, 'double'),
  stringValue: maybe(3, 'string'),
  boolValue: maybe(4, 'bool'),
  structValue: one(5, { fields: map(1, value) }),
  listValue: one(6, { values: list(1, value) }),
};

const record = {
  recordId: maybe(1, 'string'),
  properties: map(2, value),
  schema: one(3, { format: one(1, 'int32'), name: one(2, 'string') }),
  data: one(4, 'bytes'),
  stream: one(5, 'string'),
};
export type WireRecord = Wire<typeof record>;

export const sessionRequest = {
  stream: one(1, 'string'),
  records: list(2, record),
  expectedRevision: maybe(3, 'sint64'),
};
export type WireSessionRequest = Wire<typeof sessionRequest>;

export const sessionResponse = {
  output: list(1, {
    stream: one(1, 'string'),
    streamRevision: one(2, 'sint64'),
    position: maybe(3, 'sint64'),
  }),
  position: one(2, 'sint64'),
};
export type WireSessionResponse = Wire<typeof sessionResponse>;

export const recordsRequest = {
  records: list(1, record),
  checks: list(2, {
    streamState: one(1, { stream: one(1, 'string'), expectedState: one(2, 'sint64') }),
  }),
};
export type WireRecordsRequest = Wire<typeof recordsRequest>;

export const recordsResponse = {
  revisions: list(1, { stream: one(1, 'string'), revision: one(2, 'sint64') }),
  position: one(2, 'sint64'),
};
export type WireRecordsResponse = Wire<typeof recordsResponse>;

/** For all errors about one stream. */
export const streamError = { stream: one(1, 'string') };
export const revisionConflictError = {
  stream: one(1, 'string'),
  expectedRevision: one(2, 'sint64'),
  actualRevision: one(3, 'sint64'),
};
export const recordSizeError = {
  stream: one(1, 'string'),
  recordId: one(2, 'string'),
  size: one(3, 'int32'),
  maxSize: one(4, 'int32'),
};
export const transactionSizeError = { size: one(1, 'int32'), maxSize: one(2, 'int32') };
export const consistencyError = {
  violations: list(1, {
    checkIndex: one(1, 'int32'),
    streamState: one(2, {
      stream: one(1, 'string'),
      expectedState: one(2, 'sint64'),
      actualState: one(3, 'sint64'),
    }),
  }),
};
export const accessDeniedError = { operation: one(1, 'string') };
