export { natsBus, type NatsBusOptions } from './nats-bus.ts';
export type { NatsConnectionOptions } from './nats-connection.ts';
export { natsLeases, type NatsLeases, type NatsLeasesOptions } from './nats-leases.ts';
export {
  natsDestination,
  natsDestinationLimits,
  type NatsDestinationOptions,
} from './nats-destination.ts';
export {
  natsTaskEngine,
  natsTasks,
  type NatsTaskEngineOptions,
  type NatsTasksOptions,
} from './nats-task-engine.ts';
