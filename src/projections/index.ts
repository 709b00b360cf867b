export {
  documentsOf,
  type DocumentChange,
  type DocumentQueries,
  type Documents,
  type Found,
  type Page,
  type PageOptions,
  type RangeOptions,
} from './documents.ts';
export { memoryReadModels } from './memory-read-models.ts';
export { readModelLimits } from './read-model-limits.ts';
export type {
  CachedList,
  DocumentEntries,
  DocumentKey,
  DocumentOutcome,
  DocumentPage,
  DocumentWrite,
  ListKey,
  ModelKey,
  PageQuery,
  RangeQuery,
  ReadModelCapabilities,
  ReadModelHost,
  ReadModelStore,
  StoredDocument,
} from './read-model-store.ts';
export {
  readModel,
  type DocumentSource,
  type ReadModel,
  type ReadModelDefinition,
} from './read-model.ts';
