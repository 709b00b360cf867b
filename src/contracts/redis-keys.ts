// The Redis keyspace: builders of all keys, and the parser. The tenant is the hash tag of a key, so a Lua script can
// change a read model and its indexes together on a cluster.

import { filtersHash } from './filters-hash.ts';
import {
  checkId,
  checkIdentifier,
  checkLength,
  checkNoPersonalData,
  checkVersion,
  nameInvalid,
  nameLimits,
} from './identifier.ts';
import { parseSubscriptionName } from './subscription-name.ts';
import { checkTenant } from './tenant.ts';

/** The address of a BullMQ queue, whose keys are `<prefix>:<name>:*`. */
export interface QueueAddress {
  readonly prefix: string;
  readonly name: string;
}

export type RedisMeta = 'fences' | 'generation' | 'lists';

/**
 * Keys of a subscription, all in one slot: `state`, `letters` and `processed` are HASHes; `letter-ids` is a HASH from the id
 * of a dead letter to the id of its event; the others are ZSETs. Each shard has its own `marks`, `blocked` and `waiting`.
 */
export type RedisSubscriptionPart =
  | 'state'
  | 'letters'
  | 'letter-ids'
  | 'letters-by-time'
  | 'letters-pending'
  | 'processed'
  | 'processed-expiry'
  | `${'marks' | 'blocked' | 'waiting'}:${number}`;

/** Keys that the sagas of all tenants share: `tenants` is a SET, `revisions` a HASH, `losses` a number. */
export type RedisWorkflowPart = 'tenants' | 'revisions' | 'losses';

const hashShape = /^[0-9a-f]{8,64}$/;

/**
 * Builders for every key of the keyspace; each checks its parts and its length.
 *
 * @example
 * import { redisKeys } from 'millrace/contracts';
 *
 * redisKeys.snapshot('core', 'banking', 'currency', 1, 'USD'); // app:{core}:banking:currency:v1:USD
 * redisKeys.list('core', 'banking', 'currency', 1, { enabled: true }); // app:{core}:…:list:{<hash>}
 */
export const redisKeys = {
  snapshot: (tenant: string, bc: string, agg: string, v: number, id: string): string =>
    bounded(`${space(tenant, bc, agg, v)}:${keyId(id)}`),

  hash: (tenant: string, bc: string, agg: string, v: number, id: string): string =>
    bounded(`${space(tenant, bc, agg, v)}:h:${keyId(id)}`),

  indexByCode: (tenant: string, bc: string, agg: string, v: number): string =>
    redisKeys.index(tenant, bc, agg, v, 'code'),

  /** HASH from the field's value to the id. */
  index: (tenant: string, bc: string, agg: string, v: number, field: string): string =>
    bounded(`${space(tenant, bc, agg, v)}:index:by-${token('index', field)}`),

  setAll: (tenant: string, bc: string, agg: string, v: number): string =>
    redisKeys.set(tenant, bc, agg, v, 'all'),

  setEnabled: (tenant: string, bc: string, agg: string, v: number): string =>
    redisKeys.set(tenant, bc, agg, v, 'enabled'),

  set: (tenant: string, bc: string, agg: string, v: number, name: string): string =>
    bounded(`${space(tenant, bc, agg, v)}:set:${token('set', name)}`),

  zsetByUpdated: (tenant: string, bc: string, agg: string, v: number): string =>
    redisKeys.zset(tenant, bc, agg, v, 'updated'),

  /** ZSET of ids, scored by the field; the field `chat:c-1` selects the group `c-1` of the field `chat`. */
  zset: (tenant: string, bc: string, agg: string, v: number, field: string): string => {
    const at = field.indexOf(':');
    const group = at < 0 ? '' : `:${keyId(field.slice(at + 1))}`;
    const name = token('sorted set', at < 0 ? field : field.slice(0, at));
    return bounded(`${space(tenant, bc, agg, v)}:zset:by-${name}${group}`);
  },

  list: (tenant: string, bc: string, agg: string, v: number, filters: unknown): string =>
    redisKeys.listOf(tenant, bc, agg, v, filtersHash(filters)),

  /** The key of `list`, by the hash of the filters. */
  listOf: (tenant: string, bc: string, agg: string, v: number, hash: string): string => {
    if (!hashShape.test(hash))
      throw nameInvalid('filters hash', hash, 'must be 8 to 64 lower-case hexadecimal digits');
    return bounded(`${space(tenant, bc, agg, v)}:list:{${hash}}`);
  },

  /**
   * Bookkeeping of the read model engine: HASH from the id to the fence of its document, a number that
   * changes with every write, HASH of the cached lists.
   */
  meta: (tenant: string, bc: string, agg: string, v: number, what: RedisMeta): string =>
    bounded(`${space(tenant, bc, agg, v)}:meta:${what}`),

  queue: (tenant: string, bc: string, agg: string, v: number, work: string): string =>
    bounded(`${queuePrefix(tenant, bc, agg, v)}:${token('work', work)}`),

  /** The address of `queue` for BullMQ, which rejects `:` in a name but not in a prefix. */
  queueAddress: (
    tenant: string,
    bc: string,
    agg: string,
    v: number,
    work: string,
  ): QueueAddress => {
    bounded(redisKeys.queue(tenant, bc, agg, v, work));
    return { prefix: queuePrefix(tenant, bc, agg, v), name: work };
  },

  jobId: (tenant: string, bc: string, agg: string, work: string, id: string): string => {
    checkTenant(tenant);
    return bounded(
      `job:{${tenant}}:${token('bounded context', bc)}:${token('aggregate', agg)}:${token('work', work)}:${keyId(id)}`,
    );
  },

  checkpoint: (subscriptionName: string): string => {
    parseSubscriptionName(subscriptionName);
    return bounded(`checkpoint:esdb:${subscriptionName}`);
  },

  /** The number of changes of `checkpoint`, in its slot. */
  checkpointChanges: (subscriptionName: string): string =>
    bounded(`{${redisKeys.checkpoint(subscriptionName)}}:changes`),

  subscription: (subscriptionName: string, part: RedisSubscriptionPart): string => {
    parseSubscriptionName(subscriptionName);
    return bounded(`subscription:{${subscriptionName}}:${part}`);
  },

  /** SET of the names of all subscriptions. */
  subscriptions: (): string => 'subscription:names',

  /** HASH of the versions of a read model, whose family is `<bc>.<aggregate>`. */
  readModelVersions: (family: string): string => bounded(`read-model:{${family}}:versions`),

  /** The mark of the generation of a version's documents, in the slot of its family. */
  readModelMark: (family: string, v: number): string =>
    bounded(`read-model:{${family}}:v${v}:mark`),

  /** SET of the families. */
  readModels: (): string => 'read-model:families',

  /** HASH of an aggregate's stored state. */
  aggregateSnapshot: (stream: string): string => `aggregate:snapshot:${stream}`,

  /** HASH of the first use of an idempotency key. */
  commandKey: (idempotencyKey: string): string => `aggregate:key:${idempotencyKey}`,

  /** A HASH of the leases or a ZSET of the processes; both keys of a subscription are in one slot. */
  lease: (subscriptionName: string, what: 'shards' | 'workers'): string => {
    parseSubscriptionName(subscriptionName);
    return bounded(`lease:{${subscriptionName}}:${what}`);
  },

  workflowCheckpoint: (saga: string, tenant: string): string => {
    checkTenant(tenant);
    return bounded(`checkpoint:workflow:${token('saga', saga)}:{${tenant}}`);
  },

  /** ZSET of `<status> <stream>`, in the slot of the hash that it indexes. */
  workflowByStatus: (saga: string, tenant: string): string =>
    bounded(`${redisKeys.workflowCheckpoint(saga, tenant)}:by-status`),

  /** ZSET of the streams of all tenants, scored by due time; the saga is the hash tag. */
  workflowDue: (saga: string, bc: string, v: number, shard: number): string => {
    if (!Number.isSafeInteger(shard) || shard < 0) {
      throw nameInvalid('shard', String(shard), 'must be a non-negative integer');
    }
    return bounded(`${workflowSpace(saga, bc, v)}:due:${shard}`);
  },

  workflowPart: (saga: string, bc: string, v: number, what: RedisWorkflowPart): string =>
    bounded(`${workflowSpace(saga, bc, v)}:${what}`),

  /** SET of the sagas' categories. */
  workflows: (): string => 'checkpoint:workflow:sagas',
} as const;

/**
 * Encodes a job id for BullMQ, which rejects `:`; `decodeJobId` reverses it.
 *
 * @example
 * import { decodeJobId, encodeJobId, redisKeys } from 'millrace/contracts';
 *
 * const jobId = redisKeys.jobId('core', 'paymenthub', 'payment', 'process', 'p-1');
 * const forBull = encodeJobId(jobId); // job~{core}~paymenthub~payment~process~p-1
 * console.log(decodeJobId(forBull) === jobId); // true
 */
export function encodeJobId(jobId: string): string {
  return jobId.replaceAll('%', '%25').replaceAll('~', '%7E').replaceAll(':', '~');
}

/**
 * The reverse of `encodeJobId`.
 *
 * @example
 * import { decodeJobId } from 'millrace/contracts';
 *
 * console.log(decodeJobId('job~{core}~paymenthub~payment~process~p-1'));
 */
export function decodeJobId(encoded: string): string {
  return encoded.replaceAll('~', ':').replaceAll('%7E', '~').replaceAll('%25', '%');
}

/** Throws for an id that Redis cannot store, so that a document is accepted by every engine or by none. */
export function checkDocumentId(
  tenant: string,
  bc: string,
  agg: string,
  v: number,
  id: string,
): void {
  redisKeys.hash(tenant, bc, agg, v, id);
}

/** Like `checkDocumentId`, for the name of a range. */
export function checkRangeName(
  tenant: string,
  bc: string,
  agg: string,
  v: number,
  range: string,
): void {
  redisKeys.zset(tenant, bc, agg, v, range);
}

function space(tenant: string, bc: string, agg: string, v: number): string {
  return `app:${address(tenant, bc, agg, v)}`;
}

function queuePrefix(tenant: string, bc: string, agg: string, v: number): string {
  return `mq:${address(tenant, bc, agg, v)}`;
}

function workflowSpace(saga: string, bc: string, v: number): string {
  checkVersion(v);
  return `checkpoint:workflow:{${token('saga', saga)}}:${token('bounded context', bc)}:v${v}`;
}

function address(tenant: string, bc: string, agg: string, v: number): string {
  checkTenant(tenant);
  checkVersion(v);
  return `{${tenant}}:${token('bounded context', bc)}:${token('aggregate', agg)}:v${v}`;
}

function token(kind: string, text: string): string {
  checkIdentifier(kind, text);
  return text;
}

/** No id contains `:`, so an id is never confused with the markers `h:`, `index:` or `set:`. */
function keyId(id: string): string {
  checkNoPersonalData(id);
  checkId('id', id);
  return id;
}

function bounded(key: string): string {
  checkLength(key, nameLimits.keyCharsMax);
  return key;
}

interface Owned {
  readonly tenant: string;
  readonly bc: string;
  readonly agg: string;
}

/** The parts of a key. */
export type ParsedRedisKey =
  | (Owned & {
      readonly kind: 'snapshot' | 'hash' | 'index' | 'set' | 'zset' | 'list' | 'meta' | 'queue';
      readonly version: number;
      /** The id, the field (with its group: `chat:c-1`), the set, the filters hash, the bookkeeping or the work. */
      readonly name: string;
    })
  | (Owned & { readonly kind: 'job'; readonly work: string; readonly id: string })
  | { readonly kind: 'checkpoint'; readonly subscription: string }
  | { readonly kind: 'subscription'; readonly subscription: string; readonly part: string }
  | { readonly kind: 'subscriptions' }
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
      /** `due:<shard>` or a `RedisWorkflowPart`. */
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
const subscriptionPart =
  /^subscription:\{(?<subscription>sub:[a-z0-9-]+:[a-z0-9-]+:v[1-9]\d{0,8})\}:(?<part>state|letters|letter-ids|letters-by-time|letters-pending|processed|processed-expiry|(?:marks|blocked|waiting):\d+)$/;
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
 * Parses a key: its kind, its tenant and its aggregate.
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
  const own = subscriptionPart.exec(key)?.groups;
  if (own !== undefined) {
    const { subscription: name = '', part: which = '' } = own;
    return { kind: 'subscription', subscription: name, part: which };
  }
  if (key === redisKeys.subscriptions()) return { kind: 'subscriptions' };
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
