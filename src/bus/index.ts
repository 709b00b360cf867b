export {
  archiveStream,
  listArchive,
  readArchive,
  restoreArchive,
  type ArchivedStream,
  type ArchiveStreamOptions,
  type ReadArchiveOptions,
  type Restored,
} from './archive.ts';
export type { SegmentIndex } from './archive-segment.ts';
export {
  startBusSweeper,
  sweepBus,
  type BusSweeperOptions,
  type SweepOptions,
  type Swept,
} from './bus-sweeper.ts';
export type { ColdStorage } from './cold-storage.ts';
export { fileColdStorage } from './file-cold-storage.ts';
export { retentionDefaults, retentionOf, type RetentionRule } from './retention.ts';
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
