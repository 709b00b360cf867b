// All names of a sample item, from the builders.

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
/** Raise the version together with the event types when a payload change breaks old readers. */
const version = 1;

export const sampleItemNames = {
  /** One stream per sample item. Tenants with a hyphen need the directory. */
  stream: (tenant: string, id: string, tenants?: TenantLookup): string =>
    buildStreamName(bc, agg, version, tenant, id, tenants),
  /** All streams of sample items, for subscriptions. */
  category: categoryStream(bc, agg, version),
  subscription: buildSubscriptionName(bc, 'sample-item-projection', version),

  snapshot: (tenant: string, id: string): string =>
    redisKeys.snapshot(tenant, bc, agg, version, id),
  indexByName: (tenant: string): string => redisKeys.index(tenant, bc, agg, version, 'name'),
  all: (tenant: string): string => redisKeys.setAll(tenant, bc, agg, version),
  byUpdated: (tenant: string): string => redisKeys.zsetByUpdated(tenant, bc, agg, version),

  /** One queue per kind of work; BullMQ takes its name and prefix separately. */
  queue: (tenant: string): QueueAddress =>
    redisKeys.queueAddress(tenant, bc, agg, version, 'process'),
  /** Repeated work on a sample item has the same id, so it is queued once. */
  jobId: (tenant: string, id: string): string =>
    encodeJobId(redisKeys.jobId(tenant, bc, agg, 'process', id)),
} as const;
