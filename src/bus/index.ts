export type {
  Bus,
  BusCapabilities,
  BusConsumer,
  BusGroup,
  BusSubscription,
  ConsumeOptions,
  DeadLetterPage,
  FetchOptions,
  GroupDefinition,
  GroupInfo,
  MessageHandler,
  PendingMessage,
  ReadOptions,
  RequestOptions,
  StartFrom,
  StoredMessage,
  StreamGroup,
  StreamInfo,
  StreamPage,
  SubscribeOptions,
  Trimmed,
  TrimOrder,
} from './bus.ts';
export { busLimits } from './bus-limits.ts';
export type { BusMessage, Delivery, NewMessage, Published, SettleOutcome } from './bus-message.ts';
export {
  matchesFilter,
  type Appended,
  type BusEngine,
  type EngineEntry,
  type FetchRequest,
  type GroupSettings,
  type LeasedEntry,
  type ReadRequest,
  type Settlement,
  type StoredEntry,
} from './bus-engine.ts';
export { createBus, type BusOptions } from './create-bus.ts';
export { deadLetterSubject, type BusDeadLetter, type DeadLetterCause } from './dead-letter.ts';
export { groupConflict, unknownGroup } from './group-errors.ts';
export type { PayloadSchemas } from './message-codec.ts';
export { compareSequences } from './sequence.ts';
export {
  decodeTransportEnvelope,
  encodeTransportEnvelope,
  transportEnvelopeJsonSchema,
  type TransportEnvelope,
} from './transport-envelope.ts';
