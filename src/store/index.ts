export { createEventStore } from './create-event-store.ts';
export type { PersonalData } from './personal-data.ts';
export { isForgotten, subjectHeader, type Forgotten } from './erasure.ts';
export { filterLimits, type EventFilter } from './event-filter.ts';
export type {
  AppendOptions,
  AppendResult,
  EventReader,
  EventStore,
  EventStoreOptions,
  FeedItem,
  PageLoading,
  PageOptions,
  ReadAllOptions,
  ReadOptions,
  ReadStreamOptions,
  StreamAppend,
  StreamInfo,
  StreamMetadata,
  SubscribeOptions,
  SubscribeToStreamOptions,
} from './event-store.ts';
export type { ExpectedRevision, StreamState } from './expected-revision.ts';
export { createPageMeter, pageLimits, type PageBound } from './page-bound.ts';
export { parsePosition, startPosition, type Position } from './position.ts';
export { storeLimits } from './prepare-append.ts';
export type { RecordedEvent, StoredRow } from './recorded-event.ts';
export type { SubjectKey, SubjectKeys } from './erasure.ts';
export type {
  AllPage,
  AllQuery,
  Retention,
  RetentionChange,
  RowFilter,
  RowToWrite,
  ScavengeProgress,
  StoreCapabilities,
  StoreEngine,
  StreamPage,
  StreamQuery,
  StreamWrite,
  WriteOptions,
  WriteOutcome,
} from './store-engine.ts';
