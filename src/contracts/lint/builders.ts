// The builders that names should go through: their parameters, and the real functions, so that the
// linter refuses exactly what they refuse.

import { MillraceError } from '../../foundation/error.ts';
import { buildEventType } from '../event-type.ts';
import { redisKeys } from '../redis-keys.ts';
import { slackAddressing } from '../slack-addressing.ts';
import { buildCategory, buildStreamName, categoryStream, eventTypeStream } from '../stream-name.ts';

import { consumerGroups, subjects } from '../subjects.ts';
import { buildSubscriptionName } from '../subscription-name.ts';
import type { LintRule } from './finding.ts';

/** What an argument is, which decides how a bad one is mended. */
export type Parameter =
  | 'identifier'
  | 'tenant'
  | 'id'
  | 'version'
  | 'event-type'
  | 'name'
  | 'topic'
  | 'filters';

export interface Builder {
  readonly rule: LintRule;
  readonly parameters: readonly Parameter[];
  readonly build: (...args: never[]) => unknown;
}

const owned = ['tenant', 'identifier', 'identifier', 'version'] as const;
const redisKey = (build: Builder['build'], ...parameters: readonly Parameter[]): Builder => ({
  rule: 'redis-key',
  parameters,
  build,
});

const subject = (build: Builder['build'], parameter: Parameter): Builder => ({
  rule: 'subject',
  parameters: [parameter],
  build,
});

export const builders = {
  buildEventType: {
    rule: 'event-type',
    parameters: ['identifier', 'identifier', 'version'],
    build: buildEventType,
  },
  buildStreamName: {
    rule: 'stream-name',
    parameters: ['identifier', 'identifier', 'version', 'tenant', 'id'],
    build: buildStreamName,
  },
  buildCategory: {
    rule: 'stream-name',
    parameters: ['identifier', 'identifier', 'version'],
    build: buildCategory,
  },
  categoryStream: {
    rule: 'stream-name',
    parameters: ['identifier', 'identifier', 'version'],
    build: categoryStream,
  },
  eventTypeStream: { rule: 'event-type', parameters: ['event-type'], build: eventTypeStream },
  buildSubscriptionName: {
    rule: 'subscription-name',
    parameters: ['identifier', 'identifier', 'version'],
    build: buildSubscriptionName,
  },
  'redisKeys.snapshot': redisKey(redisKeys.snapshot, ...owned, 'id'),
  'redisKeys.hash': redisKey(redisKeys.hash, ...owned, 'id'),
  'redisKeys.indexByCode': redisKey(redisKeys.indexByCode, ...owned),
  'redisKeys.index': redisKey(redisKeys.index, ...owned, 'identifier'),
  'redisKeys.setAll': redisKey(redisKeys.setAll, ...owned),
  'redisKeys.setEnabled': redisKey(redisKeys.setEnabled, ...owned),
  'redisKeys.set': redisKey(redisKeys.set, ...owned, 'identifier'),
  'redisKeys.zsetByUpdated': redisKey(redisKeys.zsetByUpdated, ...owned),
  'redisKeys.zset': redisKey(redisKeys.zset, ...owned, 'identifier'),
  'redisKeys.list': redisKey(redisKeys.list, ...owned, 'filters'),
  'redisKeys.queue': redisKey(redisKeys.queue, ...owned, 'identifier'),
  'redisKeys.queueAddress': redisKey(redisKeys.queueAddress, ...owned, 'identifier'),
  'redisKeys.jobId': redisKey(
    redisKeys.jobId,
    'tenant',
    'identifier',
    'identifier',
    'identifier',
    'id',
  ),
  'redisKeys.checkpoint': redisKey(redisKeys.checkpoint, 'name'),
  'redisKeys.workflowCheckpoint': redisKey(redisKeys.workflowCheckpoint, 'identifier', 'tenant'),
  'slackAddressing.snapshot': redisKey(slackAddressing.snapshot, 'tenant', 'id'),
  'slackAddressing.dispatched': redisKey(slackAddressing.dispatched, 'tenant', 'id'),
  'slackAddressing.sendLock': redisKey(slackAddressing.sendLock, 'tenant', 'id'),
  'slackAddressing.indexUpdated': redisKey(slackAddressing.indexUpdated, 'tenant'),
  'slackAddressing.indexByStatus': redisKey(slackAddressing.indexByStatus, 'tenant', 'identifier'),
  'slackAddressing.stream': {
    rule: 'stream-name',
    parameters: ['tenant', 'id'],
    build: slackAddressing.stream,
  },
  'subjects.notify.customer': subject((id: string) => subjects.notify.customer(id), 'id'),
  'subjects.notify.topic': subject((name: string) => subjects.notify.topic(name), 'topic'),
  'subjects.tasks.type': subject((type: string) => subjects.tasks.type(type), 'identifier'),
  'consumerGroups.workers': subject((type: string) => consumerGroups.workers(type), 'identifier'),
  'consumerGroups.orchestrator': subject(
    (type: string) => consumerGroups.orchestrator(type),
    'identifier',
  ),
} as const satisfies Record<string, Builder>;

export type BuilderName = keyof typeof builders;

export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: Problem };

export interface Problem {
  readonly code: string;
  readonly reason: string;
  /** The part that was refused, and a spelling that would not be. */
  readonly value: string | undefined;
  readonly suggestion: string | undefined;
}

/** Calls a function of the contracts, and turns its refusal into a value. */
export function attempt(build: (...args: never[]) => unknown, args: readonly unknown[]): Outcome {
  try {
    return { ok: true, value: Reflect.apply(build, undefined, args) as unknown };
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    const { kind, value, reason, suggestion } = error.details;
    const named = typeof kind === 'string' && typeof reason === 'string';
    return {
      ok: false,
      problem: {
        code: error.code,
        reason: named ? `${kind} '${String(value)}' ${reason}` : error.message,
        value: typeof value === 'string' ? value : undefined,
        suggestion: typeof suggestion === 'string' ? suggestion : undefined,
      },
    };
  }
}
