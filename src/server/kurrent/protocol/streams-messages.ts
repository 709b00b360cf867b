// Messages of the Streams service, version 1.

import { list, map, maybe, one, type Wire } from './message.ts';
import {
  allOptions,
  confirmation,
  filterOptions,
  nothing,
  position,
  readEvent,
  rpcStatus,
  streamIdentifier,
  streamOptions,
  time,
  uuid,
  uuidOption,
} from './shared-messages.ts';

export const readRequest = {
  options: one(1, {
    stream: one(1, streamOptions),
    all: one(2, allOptions),
    readDirection: one(3, 'int32'),
    resolveLinks: one(4, 'bool'),
    count: maybe(5, 'uint64'),
    subscription: one(6, nothing),
    filter: one(7, filterOptions),
    uuidOption: one(9, uuidOption),
    controlOption: one(10, { compatibility: one(1, 'uint32') }),
  }),
};
export type WireReadRequest = Wire<typeof readRequest>;

const progress = {
  timestamp: one(1, time),
  streamRevision: maybe(2, 'int64'),
  position: one(3, position),
};

export const readResponse = {
  event: one(1, readEvent),
  confirmation: one(2, confirmation),
  checkpoint: one(3, { ...position, timestamp: one(3, time) }),
  streamNotFound: one(4, { streamIdentifier: one(1, streamIdentifier) }),
  firstStreamPosition: maybe(5, 'uint64'),
  lastStreamPosition: maybe(6, 'uint64'),
  caughtUp: one(8, progress),
  fellBehind: one(9, progress),
};
export type WireReadResponse = Wire<typeof readResponse>;

const proposed = {
  id: one(1, uuid),
  metadata: map(2, 'string'),
  customMetadata: one(3, 'bytes'),
  data: one(4, 'bytes'),
};
export type WireProposed = Wire<typeof proposed>;

const expected = { noStream: one(3, nothing), any: one(4, nothing), streamExists: one(5, nothing) };
export type WireExpected = Wire<typeof expected>;

const target = {
  streamIdentifier: one(1, streamIdentifier),
  revision: maybe(2, 'uint64'),
  ...expected,
};

export const appendRequest = { options: one(1, target), proposedMessage: one(2, proposed) };
export type WireAppendRequest = Wire<typeof appendRequest>;

const success = {
  currentRevision: maybe(1, 'uint64'),
  noStream: one(2, nothing),
  position: one(3, position),
};
export type WireAppendSuccess = Wire<typeof success>;

const wrongVersion = {
  oldCurrentRevision: maybe(1, 'uint64'),
  oldNoStream: one(2, nothing),
  oldExpectedRevision: maybe(3, 'uint64'),
  oldAny: one(4, nothing),
  oldStreamExists: one(5, nothing),
  currentRevision: maybe(6, 'uint64'),
  currentNoStream: one(7, nothing),
  expectedRevision: maybe(8, 'uint64'),
  expectedAny: one(9, nothing),
  expectedStreamExists: one(10, nothing),
  expectedNoStream: one(11, nothing),
};
export type WireWrongVersion = Wire<typeof wrongVersion>;

export const appendResponse = {
  success: one(1, success),
  wrongExpectedVersion: one(2, wrongVersion),
};
export type WireAppendResponse = Wire<typeof appendResponse>;

export const batchRequest = {
  correlationId: one(1, uuid),
  options: one(2, {
    streamIdentifier: one(1, streamIdentifier),
    streamPosition: maybe(2, 'uint64'),
    ...expected,
    deadlineAt: one(6, time),
    deadlineIn: one(7, time),
  }),
  proposedMessages: list(3, proposed),
  isFinal: one(4, 'bool'),
};
export type WireBatchRequest = Wire<typeof batchRequest>;

export const batchResponse = {
  correlationId: one(1, uuid),
  error: one(2, rpcStatus),
  success: one(3, success),
  streamIdentifier: one(4, streamIdentifier),
  streamPosition: maybe(5, 'uint64'),
  noStream: one(6, nothing),
  any: one(7, nothing),
  streamExists: one(8, nothing),
};
export type WireBatchResponse = Wire<typeof batchResponse>;

export const deleteRequest = { options: one(1, target) };
export type WireDeleteRequest = Wire<typeof deleteRequest>;

export const deleteResponse = { position: one(1, position), noPosition: one(2, nothing) };
export type WireDeleteResponse = Wire<typeof deleteResponse>;

// The details of a rejected batch.
export const wrongExpectedVersion = {
  currentStreamRevision: maybe(1, 'uint64'),
  currentNoStream: one(2, nothing),
  expectedStreamPosition: maybe(3, 'uint64'),
  expectedAny: one(4, nothing),
  expectedStreamExists: one(5, nothing),
  expectedNoStream: one(6, nothing),
};
export type WireWrongExpectedVersion = Wire<typeof wrongExpectedVersion>;
export const streamDeleted = { streamIdentifier: one(1, streamIdentifier) };
export const maximumAppendSizeExceeded = { maxAppendSize: one(1, 'uint32') };
export const invalidRequest = { message: one(1, 'string') };
