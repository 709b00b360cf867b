export { activeDocuments, type ActiveDocumentsOptions } from './active-documents.ts';
export {
  documentsOf,
  type CountOptions,
  type DocumentChange,
  type DocumentQueries,
  type Documents,
  type Found,
  type Page,
  type PageOptions,
  type RangeOptions,
} from './documents.ts';
export type { InlineAppends, InlinePlan, InlineRoles } from './inline-appends.ts';
export { inlineProjections } from './inline-projections.ts';
export {
  projection,
  projectionLimits,
  type Apply,
  type ProjectedEvent,
  type Projection,
  type ProjectionDefinition,
} from './projection.ts';
export type {
  CachedList,
  DocumentEntries,
  DocumentKey,
  DocumentMarks,
  DocumentOutcome,
  DocumentPage,
  DocumentWrite,
  ListKey,
  ModelKey,
  PageQuery,
  RangeBounds,
  RangeQuery,
  ReadModelCapabilities,
  ReadModelRoles,
  ReadModelStore,
  RedisLayout,
  StoredDocument,
} from './read-model-store.ts';
export {
  readModel,
  readModelLimits,
  type DocumentSource,
  type ReadModel,
  type ReadModelDefinition,
} from './read-model.ts';
export type {
  ReadModelVersion,
  ReadModelVersions,
  VersionKey,
  VersionStatus,
} from './read-model-versions.ts';
export {
  startProjection,
  waitForProjection,
  type ProjectionRunner,
  type ProjectionRoles,
} from './start-projection.ts';
export type { WaitOptions } from './run/wait-with-timeout.ts';
export type { RebuildProgress } from './rules/rebuild-progress.ts';
export {
  rebuildProjection,
  type RebuildOptions,
  type RebuildResult,
} from './rebuild-projection.ts';
export { restoreProjection, type RestoreOptions } from './restore-projection.ts';
export {
  projectionStatus,
  retireProjection,
  switchProjection,
  type ProjectionStatus,
  type ProjectionVersion,
  type RetireOptions,
} from './switch-projection.ts';
export {
  createLiveMirror,
  liveMirrorLimits,
  mirrorChannel,
  type LiveMirror,
  type LiveMirrorOptions,
  type MirrorListener,
  type MirrorMessage,
} from './live-mirror.ts';
export type { MirrorOutlet, MirrorPost } from './run/mirror-buffer.ts';
