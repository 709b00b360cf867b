export { archiveOutbox, type ArchiveOutboxOptions } from './transfer/archive-outbox.ts';
export {
  createPlatform,
  type DispatcherTuning,
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
  type AuditRecord,
  type AuditPage,
  type AuditRequest,
} from './audit-log.ts';
export type { DatabaseSchema, SchemaStep } from './engines/database-schema.ts';
export {
  examineEngines,
  type EngineReport,
  type ExamineEnginesOptions,
} from './engines/examine-engines.ts';
export { eventStoreSchema, outboxSchema } from './engines/engine-schemas.ts';
export {
  exportEvents,
  exportLimits,
  type ExportOptions,
  type ExportProgress,
} from './transfer/export-events.ts';
export { exportToFile, type ExportFileOptions, type ExportResult } from './transfer/export-file.ts';
export { importLimits } from './transfer/import-chunks.ts';
export {
  importEvents,
  type ImportOptions,
  type ImportProgress,
  type ImportResult,
} from './transfer/import-events.ts';
export { importFromFile, type ImportFileOptions } from './transfer/import-file.ts';
export {
  defineConfig,
  loadConfig,
  type Environment,
  type MillraceConfig,
  type SampleLine,
  type ServerSettings,
} from './config/millrace-config.ts';
export { openColdStorage, type ArchiveKeys } from './engines/open-cold-storage.ts';
export { openEngineAt, type EngineOptions } from './engines/open-engines.ts';
export type { EngineHandle, RoleMap } from './engines/engine-roles.ts';
export type { EngineName } from '../contracts/engine-url.ts';
export type { RoleName, UrlField } from './engines/engine-table.ts';
export { redactUrl, type EngineUrl } from './engines/engine-url.ts';
export type { EngineUrls, ResolvedRole } from './engines/resolve-roles.ts';
export type { PlatformEngines } from './engines/platform-engines.ts';
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
} from './config/outbox-environment.ts';
export {
  startOutbox,
  type RunningOutbox,
  type StartOutboxOptions,
} from './run-standalone-outbox.ts';
export { followTasks, type FollowedSignal, type FollowTasksQuery } from './follow-tasks.ts';
export {
  forgetMonitors,
  monitorTasks,
  taskGroups,
  type MonitoredEnd,
  type MonitorTasksOptions,
} from './monitor-tasks.ts';
export {
  openTokens,
  type CreatedToken,
  type Tokens,
  type TokensOptions,
} from './tokens/open-tokens.ts';
export {
  tokenLimits,
  tokenState,
  type NewToken,
  type Token,
  type TokenState,
  type VerifiedToken,
} from './tokens/token.ts';
export type { TokenScope } from './tokens/scopes.ts';
export { createSecretHider, type SecretHider } from './modules/hide-secrets.ts';
export { createAppendRules, type AcceptEvent, type ClientEvent } from './modules/append-rules.ts';
export {
  defineModule,
  type AnyAggregate,
  type AnyTask,
  type Destinations,
  type ModuleBook,
  type ModuleContext,
  type ModuleService,
  type PlatformModule,
  type UsedRole,
} from './modules/platform-module.ts';
export type { DocumentFamily } from './platform-projections.ts';
export type { ProjectionRebuild, ProjectionRebuilds } from './projection-rebuilds.ts';
export { platformRoles, type PlatformRole } from './config/platform-role.ts';
export {
  defineSocket,
  type MessageContext,
  type ModuleSocket,
  type ModuleWeb,
  type SocketClient,
  type SocketSession,
  type WebContext,
} from './modules/module-web.ts';
export { flowHeadersShown, flowOf, type Flow } from './modules/flow-of.ts';
export { personOf, tenantFor, type Access, type Principal } from './modules/principal.ts';
export {
  route,
  type RouteResponse,
  type ResponseInfo,
  type ApiRequest,
  type ErrorShape,
  type JsonResponse,
  type Method,
  type ProblemDetails,
  type ReaderMemory,
  type Route,
  type StreamResponse,
  type TextResponse,
} from './modules/route.ts';
export { serverSentEvents, type SentEvent } from './modules/server-sent-events.ts';
export { createTopics, type Topics } from './modules/socket-topics.ts';
