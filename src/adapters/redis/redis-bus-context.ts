// What the parts of the Redis engine share.

import type { Clock } from '../../foundation/clock.ts';
import type { BusCalls } from './redis-bus-calls.ts';
import type { BusRegistry } from './redis-bus-registry.ts';
import type { BusSpace } from './redis-bus-space.ts';
import type { BusWakes } from './redis-bus-wake.ts';

export interface RedisBusContext {
  readonly calls: BusCalls;
  readonly space: BusSpace;
  readonly registry: BusRegistry;
  readonly wakes: BusWakes;
  readonly clock: Clock;
}
