// Reads keys of the keyspace back, for consoles, sweepers and the linter.

import { nameInvalid } from './identifier.ts';
import { redisKeys } from './redis-keys.ts';

interface Owned {
  readonly tenant: string;
  readonly bc: string;
  readonly agg: string;
}

/** What a key is about. */
export type ParsedRedisKey =
  | (Owned & {
      readonly kind: 'snapshot' | 'hash' | 'index' | 'set' | 'zset' | 'list' | 'meta' | 'queue';
      readonly version: number;
      /** The id, the field (and its group, `chat:c-1`), the set's name, the filters hash, what of the engine's own, or the work. */
      readonly name: string;
    })
  | (Owned & { readonly kind: 'job'; readonly work: string; readonly id: string })
  | { readonly kind: 'checkpoint'; readonly subscription: string }
  | {
      readonly kind: 'lease';
      readonly subscription: string;
      readonly what: 'shards' | 'workers';
    }
  | {
      readonly kind: 'workflow' | 'workflow-by-status';
      readonly saga: string;
      readonly tenant: string;
    }
  | {
      readonly kind: 'workflow-part';
      readonly saga: string;
      readonly bc: string;
      readonly version: number;
      /** `due:<shard>`, or one of the rest. */
      readonly name: string;
    }
  | { readonly kind: 'workflows' };

const owned = String.raw`\{(?<tenant>[a-z0-9-]+)\}:(?<bc>[a-z0-9-]+):(?<agg>[a-z0-9-]+)`;
const version = String.raw`v(?<version>[1-9]\d{0,8})`;
const readModel = new RegExp(
  `^app:${owned}:${version}:(?:(?:(?<marker>h|set|meta|index:by|zset:by)(?::|(?<=by)-))?(?<name>[A-Za-z0-9._-]+(?:(?<=:zset:by-[a-z0-9-]+):[A-Za-z0-9._-]+)?)|list:\\{(?<hash>[0-9a-f]+)\\})$`,
);
const queue = new RegExp(`^mq:${owned}:${version}:(?<name>[a-z0-9-]+)$`);
const job = new RegExp(`^job:${owned}:(?<work>[a-z0-9-]+):(?<id>[A-Za-z0-9._-]+)$`);
const checkpoint = /^checkpoint:esdb:(?<subscription>sub:[a-z0-9-]+:[a-z0-9-]+:v[1-9]\d{0,8})$/;
const lease =
  /^lease:\{(?<subscription>sub:[a-z0-9-]+:[a-z0-9-]+:v[1-9]\d{0,8})\}:(?<what>shards|workers)$/;
const workflow =
  /^checkpoint:workflow:(?<saga>[a-z0-9-]+):\{(?<tenant>[a-z0-9-]+)\}(?<by>:by-status)?$/;
const workflowPart = new RegExp(
  String.raw`^checkpoint:workflow:\{(?<saga>[a-z0-9-]+)\}:(?<bc>[a-z0-9-]+):${version}:(?<name>due:\d+|tenants|revisions|losses)$`,
);

const markers = {
  h: 'hash',
  set: 'set',
  meta: 'meta',
  'index:by': 'index',
  'zset:by': 'zset',
} as const;

/**
 * Takes a key apart: what kind it is, whose, and of which aggregate.
 *
 * @example
 * import { parseRedisKey } from 'millrace/contracts';
 *
 * const key = parseRedisKey('app:{core}:banking:currency:v1:USD');
 * if (key.kind === 'snapshot') console.log(key.tenant, key.name); // core USD
 */
export function parseRedisKey(key: string): ParsedRedisKey {
  const app = readModel.exec(key)?.groups;
  if (app !== undefined) {
    const marker = app['marker'] as keyof typeof markers | undefined;
    const hash = app['hash'];
    const kind = hash !== undefined ? 'list' : marker === undefined ? 'snapshot' : markers[marker];
    return {
      kind,
      ...owner(app),
      version: Number(app['version']),
      name: hash ?? app['name'] ?? '',
    };
  }
  const mq = queue.exec(key)?.groups;
  if (mq !== undefined) {
    return { kind: 'queue', ...owner(mq), version: Number(mq['version']), name: mq['name'] ?? '' };
  }
  const jobId = job.exec(key)?.groups;
  if (jobId !== undefined) {
    return { kind: 'job', ...owner(jobId), work: jobId['work'] ?? '', id: jobId['id'] ?? '' };
  }
  const subscription = checkpoint.exec(key)?.groups?.['subscription'];
  if (subscription !== undefined) return { kind: 'checkpoint', subscription };
  const leased = lease.exec(key)?.groups;
  if (leased !== undefined) {
    const what = leased['what'] === 'shards' ? 'shards' : 'workers';
    return { kind: 'lease', subscription: leased['subscription'] ?? '', what };
  }
  const saga = workflow.exec(key)?.groups;
  if (saga !== undefined) {
    const kind = saga['by'] === undefined ? 'workflow' : 'workflow-by-status';
    return { kind, saga: saga['saga'] ?? '', tenant: saga['tenant'] ?? '' };
  }
  const part = workflowPart.exec(key)?.groups;
  if (part !== undefined) {
    const { saga: name = '', bc = '' } = part;
    return {
      kind: 'workflow-part',
      saga: name,
      bc,
      version: Number(part['version']),
      name: part['name'] ?? '',
    };
  }
  if (key === redisKeys.workflows()) return { kind: 'workflows' };
  throw nameInvalid('key', key, 'is none of app:{…}, mq:{…}, job:{…}, checkpoint:…, lease:{…}');
}

function owner(groups: Record<string, string | undefined>): Owned {
  return {
    tenant: groups['tenant'] ?? '',
    bc: groups['bc'] ?? '',
    agg: groups['agg'] ?? '',
  };
}
