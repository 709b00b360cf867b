// The dependencies and scripts that all parts of the Redis bus share.

import type { Clock } from '../../../foundation/clock.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { loadScripts } from '../connection/script.ts';
import type { BusKeyspace } from './keyspace.ts';
import type { BusRegistry } from './registry.ts';
import type { BusWakes } from './wakes.ts';

export interface RedisBusContext {
  readonly redis: RedisConnection;
  readonly keyspace: BusKeyspace;
  readonly registry: BusRegistry;
  readonly wakes: BusWakes;
  readonly clock: Clock;
}

/** One script changes a stream together with its leases and groups. */
export const busScripts = loadScripts(new URL('scripts/', import.meta.url), [
  'register',
  'rebuild',
  'append',
  'fetch',
  'read',
  'settle',
  'ensureGroup',
  'groupPlaced',
  'changeGroup',
  'info',
  'trim',
  'deleteStream',
]);
