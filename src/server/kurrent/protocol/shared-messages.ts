// Messages of several services.

import { list, map, maybe, one, type Empty, type Fields, type Wire } from './message.ts';

export const nothing = {} as const satisfies Fields;
/** The value of `nothing`. */
export const empty: Empty = {};

export const uuid = {
  structured: one(1, {
    mostSignificantBits: one(1, 'int64'),
    leastSignificantBits: one(2, 'int64'),
  }),
  string: maybe(2, 'string'),
};
export type WireUuid = Wire<typeof uuid>;

/** A timestamp or a duration. */
export const time = { seconds: one(1, 'int64'), nanos: one(2, 'int32') };
export type WireTime = Wire<typeof time>;

/** `google.rpc.Status`. */
export const rpcStatus = {
  code: one(1, 'int32'),
  message: one(2, 'string'),
  details: one(3, { typeUrl: one(1, 'string'), value: one(2, 'bytes') }),
};
export type WireStatus = Wire<typeof rpcStatus>;

export const streamIdentifier = { streamName: one(3, 'bytes') };
export type WireStreamIdentifier = Wire<typeof streamIdentifier>;

export const position = { commitPosition: one(1, 'uint64'), preparePosition: one(2, 'uint64') };
export type WirePosition = Wire<typeof position>;

const recordedEvent = {
  id: one(1, uuid),
  streamIdentifier: one(2, streamIdentifier),
  streamRevision: one(3, 'uint64'),
  preparePosition: one(4, 'uint64'),
  commitPosition: one(5, 'uint64'),
  metadata: map(6, 'string'),
  customMetadata: one(7, 'bytes'),
  data: one(8, 'bytes'),
};
export type WireRecordedEvent = Wire<typeof recordedEvent>;

export const readEvent = {
  event: one(1, recordedEvent),
  link: one(2, recordedEvent),
  commitPosition: maybe(3, 'uint64'),
  noPosition: one(4, nothing),
  /** Only of persistent subscriptions. */
  retryCount: maybe(5, 'int32'),
};
export type WireReadEvent = Wire<typeof readEvent>;

export const confirmation = { subscriptionId: one(1, 'string') };

const expression = { regex: one(1, 'string'), prefix: list(2, 'string') };
export type WireExpression = Wire<typeof expression>;

export const filterOptions = {
  streamIdentifier: one(1, expression),
  eventType: one(2, expression),
  max: maybe(3, 'uint32'),
  checkpointIntervalMultiplier: one(5, 'uint32'),
};
export type WireFilter = Wire<typeof filterOptions>;

export const uuidOption = { structured: one(1, nothing), string: one(2, nothing) };

export const streamOptions = {
  streamIdentifier: one(1, streamIdentifier),
  revision: maybe(2, 'uint64'),
  start: one(3, nothing),
  end: one(4, nothing),
};
export type WireStreamOptions = Wire<typeof streamOptions>;

export const allOptions = {
  position: one(1, position),
  start: one(2, nothing),
  end: one(3, nothing),
  /** Only of persistent subscriptions; reads have the filter elsewhere. */
  filter: one(4, filterOptions),
};
export type WireAllOptions = Wire<typeof allOptions>;
