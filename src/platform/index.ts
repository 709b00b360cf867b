export { archiveOutbox, type ArchiveOutboxOptions } from './archive-outbox.ts';
export {
  createPlatform,
  type DispatcherTuning,
  type DocumentFamily,
  type Platform,
  type PlatformConfig,
} from './create-platform.ts';
export {
  createAuditLog,
  type AuditActor,
  type AuditEntry,
  type AuditFilter,
  type AuditLog,
  type AuditLogOptions,
  type AuditPage,
  type AuditRequest,
} from './audit-log.ts';
export type { DatabaseSchema, SchemaStep } from './database-schema.ts';
export {
  examineEngines,
  type EngineReport,
  type EngineRole,
  type ExamineEnginesOptions,
} from './examine-engines.ts';
export { eventStoreSchema } from './event-store-schema.ts';
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
export {
  defineConfig,
  loadConfig,
  type Environment,
  type MillraceConfig,
  type SampleLine,
  type ServerSettings,
} from './millrace-config.ts';
export { openBus, openColdStorage, type ArchiveKeys } from './open-bus.ts';
export { openDeliveryQueue } from './open-delivery-queue.ts';
export { openEventStore, type OpenEventStoreOptions } from './open-event-store.ts';
export { openLeases, type OpenLeasesOptions } from './open-leases.ts';
export { openOutboxLedger, type OpenOutboxLedgerOptions } from './open-outbox-ledger.ts';
export {
  openKeyStore,
  openWorkQueue,
  type OpenWorkOptions,
  type OpenWorkQueueOptions,
} from './open-work.ts';
export { outboxSchema } from './outbox-schema.ts';
export {
  defineOutbox,
  type OutboxDefinition,
  type OutboxModule,
  type OutboxSender,
} from './define-outbox.ts';
export {
  outboxEnvironmentLimits,
  readOutboxEnvironment,
  type OutboxSettings,
} from './outbox-environment.ts';
export { startOutbox, type RunningOutbox, type StartOutboxOptions } from './start-outbox.ts';
export { openTasks } from './open-tasks.ts';
export { followTasks, type FollowedSignal, type FollowTasksQuery } from './follow-tasks.ts';
export {
  forgetMonitors,
  monitorTasks,
  taskGroups,
  type MonitoredEnd,
  type MonitorTasksOptions,
} from './monitor-tasks.ts';
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
  type AnyTask,
  type Destinations,
  type ModuleBook,
  type ModuleContext,
  type ModuleService,
  type PlatformModule,
} from './platform-module.ts';
export type { ProjectionRebuild, ProjectionRebuilds } from './projection-rebuilds.ts';
export { platformRoles, type PlatformRole } from './platform-role.ts';
export {
  defineSocket,
  type ModuleSocket,
  type ModuleWeb,
  type SocketAsking,
  type SocketClient,
  type SocketSession,
  type WebContext,
} from './module-web.ts';
export { flowHeadersShown, flowOf, type Flow } from './flow-of.ts';
export { tenantFor, type Access, type Principal } from './principal.ts';
export {
  route,
  type Answer,
  type AnswerInfo,
  type ApiRequest,
  type ErrorShape,
  type JsonAnswer,
  type Method,
  type ProblemDetails,
  type Route,
  type StreamAnswer,
} from './route.ts';
export { serverSentEvents, type SentEvent } from './server-sent-events.ts';
export { createTopics, type Topics } from './socket-topics.ts';
