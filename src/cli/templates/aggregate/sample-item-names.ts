// Every name of a sample item, made by the builders: nobody writes one by hand.

import {
  buildStreamName,
  buildSubscriptionName,
  categoryStream,
  encodeJobId,
  redisKeys,
  type QueueAddress,
  type TenantLookup,
} from 'millrace/contracts';

const bc = 'sample-context';
const agg = 'sample-item';
/** Raised, together with the event types, when a payload changes so that old readers would break. */
const version = 1;

export const sampleItemNames = {
  /** One stream holds one sample item's history. Tenants with a hyphen need the directory. */
  stream: (tenant: string, id: string, tenants?: TenantLookup): string =>
    buildStreamName(bc, agg, version, tenant, id, tenants),
  /** The index of all those streams, to subscribe to. */
  category: categoryStream(bc, agg, version),
  subscription: buildSubscriptionName(bc, 'sample-item-projection', version),

  snapshot: (tenant: string, id: string): string =>
    redisKeys.snapshot(tenant, bc, agg, version, id),
  indexByName: (tenant: string): string => redisKeys.index(tenant, bc, agg, version, 'name'),
  all: (tenant: string): string => redisKeys.setAll(tenant, bc, agg, version),
  byUpdated: (tenant: string): string => redisKeys.zsetByUpdated(tenant, bc, agg, version),

  /** One queue per kind of work; BullMQ takes its name and its prefix apart. */
  queue: (tenant: string): QueueAddress =>
    redisKeys.queueAddress(tenant, bc, agg, version, 'process'),
  /** The same work on the same sample item has the same id, so that it is queued once. */
  jobId: (tenant: string, id: string): string =>
    encodeJobId(redisKeys.jobId(tenant, bc, agg, 'process', id)),
} as const;
