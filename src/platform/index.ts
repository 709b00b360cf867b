export {
  createPlatform,
  platformRoles,
  type DispatcherTuning,
  type DocumentFamily,
  type Platform,
  type PlatformConfig,
  type PlatformRole,
} from './create-platform.ts';
export { eventStoreSchema, type EventStoreSchema, type SchemaStep } from './event-store-schema.ts';
export {
  exportEvents,
  exportLimits,
  type ExportOptions,
  type ExportProgress,
} from './export-events.ts';
export { exportToFile, type ExportFileOptions, type ExportResult } from './export-file.ts';
export { importLimits } from './import-chunks.ts';
export {
  importEvents,
  type ImportOptions,
  type ImportProgress,
  type ImportResult,
} from './import-events.ts';
export { importFromFile, type ImportFileOptions } from './import-file.ts';
export { openEventStore, type OpenEventStoreOptions } from './open-event-store.ts';
export { openLeases, type OpenLeasesOptions } from './open-leases.ts';
export { openOutboxLedger, type OpenOutboxLedgerOptions } from './open-outbox-ledger.ts';
export { openReadModels, type OpenReadModelsOptions } from './open-read-models.ts';
export {
  openTokens,
  type CreatedToken,
  type Tokens,
  type TokensOptions,
  type VerifiedToken,
} from './open-tokens.ts';
export { openSagaIndex, type OpenSagaIndexOptions } from './open-saga-index.ts';
export { redactStoreUrl } from './store-url.ts';
export {
  tokenLimits,
  tokenState,
  type NewToken,
  type Token,
  type TokenScope,
  type TokenState,
} from './token.ts';
export type { EngineOptions, EngineUrls, PlatformEngines } from './platform-engines.ts';
export {
  defineModule,
  type AnyAggregate,
  type Destinations,
  type ModuleBook,
  type ModuleContext,
  type PlatformModule,
} from './platform-module.ts';
