// The Redis keyspace. Every key pins its tenant's slot with a hash tag, so that one Lua script can
// change a read model and its indexes together on a cluster.

import { filtersHash } from './filters-hash.ts';
import {
  checkId,
  checkIdentifier,
  checkLength,
  checkVersion,
  nameInvalid,
  nameLimits,
} from './identifier.ts';
import { checkNoPersonalData } from './personal-data.ts';
import { parseSubscriptionName } from './subscription-name.ts';
import { checkTenant } from './tenant.ts';

/** Where BullMQ keeps one queue: its keys read `<prefix>:<name>:*`. */
export interface QueueAddress {
  readonly prefix: string;
  readonly name: string;
}

export type RedisMeta = 'fences' | 'generation' | 'lists';

/** What the sagas of all tenants share: SET, HASH, a number. */
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

  /** ZSET of ids, scored by the field; of `chat:c-1`, of those in one group only. */
  zset: (tenant: string, bc: string, agg: string, v: number, field: string): string => {
    const at = field.indexOf(':');
    const group = at < 0 ? '' : `:${keyId(field.slice(at + 1))}`;
    const name = token('sorted set', at < 0 ? field : field.slice(0, at));
    return bounded(`${space(tenant, bc, agg, v)}:zset:by-${name}${group}`);
  },

  list: (tenant: string, bc: string, agg: string, v: number, filters: unknown): string =>
    redisKeys.listOf(tenant, bc, agg, v, filtersHash(filters)),

  /** The same by the hash of its filters. */
  listOf: (tenant: string, bc: string, agg: string, v: number, hash: string): string => {
    if (!hashShape.test(hash)) throw nameInvalid('filters hash', hash, 'is hexadecimal');
    return bounded(`${space(tenant, bc, agg, v)}:list:{${hash}}`);
  },

  /**
   * What the engine of read models keeps for itself. HASH from the id to the fence of its document;
   * a number that changes with every write; HASH of the lists that are cached.
   */
  meta: (tenant: string, bc: string, agg: string, v: number, what: RedisMeta): string =>
    bounded(`${space(tenant, bc, agg, v)}:meta:${what}`),

  queue: (tenant: string, bc: string, agg: string, v: number, work: string): string =>
    bounded(`${queuePrefix(tenant, bc, agg, v)}:${token('work', work)}`),

  /** The same queue as BullMQ wants it named: it refuses `:` in a name, not in a prefix. */
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

  /** HASH of the leases, ZSET of the processes: all of a subscription's in one slot. */
  lease: (subscriptionName: string, what: 'shards' | 'workers'): string => {
    parseSubscriptionName(subscriptionName);
    return bounded(`lease:{${subscriptionName}}:${what}`);
  },

  workflowCheckpoint: (saga: string, tenant: string): string => {
    checkTenant(tenant);
    return bounded(`checkpoint:workflow:${token('saga', saga)}:{${tenant}}`);
  },

  /** ZSET of `<status> <stream>`, in the slot of the hash that it finds entries of. */
  workflowByStatus: (saga: string, tenant: string): string =>
    bounded(`${redisKeys.workflowCheckpoint(saga, tenant)}:by-status`),

  /** ZSET of streams, scored by when they are due: of all tenants, in a slot of the saga's own. */
  workflowDue: (saga: string, bc: string, v: number, shard: number): string => {
    if (!Number.isSafeInteger(shard) || shard < 0) {
      throw nameInvalid('shard', String(shard), 'must be a whole number from 0');
    }
    return bounded(`${workflowSpace(saga, bc, v)}:due:${shard}`);
  },

  workflowPart: (saga: string, bc: string, v: number, what: RedisWorkflowPart): string =>
    bounded(`${workflowSpace(saga, bc, v)}:${what}`),

  /** SET of the sagas' categories. */
  workflows: (): string => 'checkpoint:workflow:sagas',
} as const;

/**
 * Writes a job id so that BullMQ, which refuses `:`, accepts it; `decodeJobId` reads it back.
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

/** `h`, `index`, `set`, … follow the version too, but with a colon behind them, which no id holds. */
function keyId(id: string): string {
  checkNoPersonalData(id);
  checkId('id', id);
  return id;
}

function bounded(key: string): string {
  checkLength(key, nameLimits.keyCharsMax);
  return key;
}
