// Messages of the PersistentSubscriptions service, version 1.

import { list, maybe, one, type Wire } from './message.ts';
import {
  allOptions,
  confirmation,
  nothing,
  readEvent,
  streamIdentifier,
  streamOptions,
  uuid,
  uuidOption,
} from './shared-messages.ts';

export const groupReadRequest = {
  options: one(1, {
    streamIdentifier: one(1, streamIdentifier),
    groupName: one(2, 'string'),
    bufferSize: one(3, 'int32'),
    uuidOption: one(4, uuidOption),
    all: one(5, nothing),
  }),
  ack: one(2, { ids: list(2, uuid) }),
  nack: one(3, { ids: list(2, uuid), action: one(3, 'int32'), reason: one(4, 'string') }),
};
export type WireGroupReadRequest = Wire<typeof groupReadRequest>;

export const groupReadResponse = {
  event: one(1, readEvent),
  subscriptionConfirmation: one(2, confirmation),
};
export type WireGroupReadResponse = Wire<typeof groupReadResponse>;

const settings = {
  resolveLinks: one(1, 'bool'),
  revision: one(2, 'uint64'),
  extraStatistics: one(3, 'bool'),
  messageTimeoutTicks: maybe(4, 'int64'),
  maxRetryCount: one(5, 'int32'),
  checkpointAfterTicks: maybe(6, 'int64'),
  minCheckpointCount: one(7, 'int32'),
  maxCheckpointCount: one(8, 'int32'),
  maxSubscriberCount: one(9, 'int32'),
  liveBufferSize: one(10, 'int32'),
  readBatchSize: one(11, 'int32'),
  historyBufferSize: one(12, 'int32'),
  namedConsumerStrategy: one(13, 'int32'),
  messageTimeoutMs: maybe(14, 'int32'),
  checkpointAfterMs: maybe(15, 'int32'),
  consumerStrategy: one(16, 'string'),
};
export type WireSettings = Wire<typeof settings>;

export const writeRequest = {
  options: one(1, {
    streamIdentifier: one(1, streamIdentifier),
    groupName: one(2, 'string'),
    settings: one(3, settings),
    stream: one(4, streamOptions),
    all: one(5, allOptions),
  }),
};
export type WireWriteRequest = Wire<typeof writeRequest>;

export const deleteGroupRequest = {
  options: one(1, {
    streamIdentifier: one(1, streamIdentifier),
    groupName: one(2, 'string'),
    all: one(3, nothing),
  }),
};
/** The group of a request. */
export type WireGroup = NonNullable<Wire<typeof deleteGroupRequest>['options']>;

/** Has the fields of the other group requests, with other numbers. */
export const getInfoRequest = {
  options: one(1, {
    streamIdentifier: one(1, streamIdentifier),
    all: one(2, nothing),
    groupName: one(3, 'string'),
  }),
};

const subscriptionInfo = {
  eventSource: one(1, 'string'),
  groupName: one(2, 'string'),
  status: one(3, 'string'),
  connections: list(4, {
    from: one(1, 'string'),
    username: one(2, 'string'),
    totalItems: one(4, 'int64'),
    availableSlots: one(7, 'int32'),
    inFlightMessages: one(8, 'int32'),
    connectionName: one(9, 'string'),
  }),
  totalItems: one(6, 'int64'),
  lastCheckpointedEventPosition: one(8, 'string'),
  lastKnownEventPosition: one(9, 'string'),
  resolveLinkTos: one(10, 'bool'),
  startFrom: one(11, 'string'),
  messageTimeoutMilliseconds: one(12, 'int32'),
  extraStatistics: one(13, 'bool'),
  maxRetryCount: one(14, 'int32'),
  liveBufferSize: one(15, 'int32'),
  bufferSize: one(16, 'int32'),
  readBatchSize: one(17, 'int32'),
  checkPointAfterMilliseconds: one(18, 'int32'),
  minCheckPointCount: one(19, 'int32'),
  maxCheckPointCount: one(20, 'int32'),
  readBufferCount: one(21, 'int32'),
  retryBufferCount: one(23, 'int32'),
  totalInFlightMessages: one(24, 'int32'),
  outstandingMessagesCount: one(25, 'int32'),
  namedConsumerStrategy: one(26, 'string'),
  maxSubscriberCount: one(27, 'int32'),
  parkedMessageCount: one(28, 'int64'),
};
export type WireSubscriptionInfo = Wire<typeof subscriptionInfo>;

export const getInfoResponse = { subscriptionInfo: one(1, subscriptionInfo) };

export const replayParkedRequest = {
  options: one(1, {
    groupName: one(1, 'string'),
    streamIdentifier: one(2, streamIdentifier),
    all: one(3, nothing),
    stopAt: maybe(4, 'int64'),
  }),
};

export const listRequest = {
  options: one(1, {
    listForStream: one(2, { stream: one(1, streamIdentifier), all: one(2, nothing) }),
  }),
};

export const listResponse = { subscriptions: list(1, subscriptionInfo) };
