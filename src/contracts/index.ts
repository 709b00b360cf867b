export {
  defineCommand,
  type CommandDefinition,
  type CommandOf,
  type CommandType,
  type NewCommand,
} from './define-command.ts';
export { defineEvent, type EventDefinition, type EventOf } from './define-event.ts';
export {
  createEnvelope,
  envelopeJsonSchema,
  isEnvelope,
  validateEnvelope,
  type DomainEventEnvelope,
  type EnvelopeContext,
  type EnvelopeOptions,
  type NewEvent,
} from './envelope.ts';
export {
  readForm,
  type EventForm,
  type EventFormat,
  type FormatOptions,
  type WrittenEvent,
} from './event-form.ts';
export {
  buildEventType,
  isEventType,
  parseEventType,
  type EventType,
  type ParsedEventType,
} from './event-type.ts';
export { filtersHash } from './filters-hash.ts';
export {
  buildIdempotencyKey,
  parseIdempotencyKey,
  type IdempotencyKeyParts,
} from './idempotency-key.ts';
export { nameLimits, type Identifier, type IsIdentifier } from './identifier.ts';
export {
  encodePayload,
  payloadLimits,
  type EncodedPayload,
  type PayloadLimits,
} from './json-payload.ts';
export {
  decodeJobId,
  encodeJobId,
  parseRedisKey,
  redisKeys,
  type ParsedRedisKey,
  type QueueAddress,
  type RedisMeta,
  type RedisWorkflowPart,
} from './redis-keys.ts';
export { compileSchema, type Problem, type Schema } from './schema.ts';
export { slackAddressing, type SendMessageJob } from './slack-addressing.ts';
export {
  buildCategory,
  buildStreamName,
  categoryStream,
  eventTypeStream,
  parseStreamName,
  type ParsedStreamName,
} from './stream-name.ts';
export {
  buildSubscriptionName,
  parseSubscriptionName,
  type ParsedSubscriptionName,
} from './subscription-name.ts';
export { createTenantDirectory, type TenantDirectory, type TenantLookup } from './tenant.ts';
export {
  matchSubject,
  streamKeyToSubject,
  subjectToStreamKey,
  validatePattern,
  validateSubject,
} from './subject-match.ts';
export {
  parseSubject,
  type BroadcastSubject,
  type CustomerSubject,
  type EventSubject,
  type ParsedSubject,
  type TaskControlSubject,
  type TaskSubject,
  type TopicSubject,
} from './subject-parse.ts';
export { subjectLimits } from './subject-tokens.ts';
export {
  consumerGroups,
  createSubjects,
  subjectActions,
  subjects,
  type SubjectOptions,
  type Subjects,
} from './subjects.ts';
export { Type } from './type.ts';
export {
  lintRules,
  type Finding,
  type LintOptions,
  type LintRule,
  type Severity,
} from './lint/finding.ts';
export {
  lintLimits,
  lintPaths,
  type LintPathsOptions,
  type LintProgress,
  type LintReport,
} from './lint/lint-paths.ts';
export { lintSource } from './lint/lint-source.ts';
