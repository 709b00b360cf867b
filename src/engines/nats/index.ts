export { natsBus, type NatsBusOptions } from './bus/bus.ts';
export type { NatsConnectionOptions } from './connection/connection.ts';
export { natsLeases, type NatsLeases, type NatsLeasesOptions } from './leases/leases.ts';
export {
  natsDestination,
  natsDestinationLimits,
  type NatsDestinationOptions,
} from '../../destinations/nats/destination.ts';
export {
  natsTaskEngine,
  natsTasks,
  type NatsTaskEngineOptions,
  type NatsTasksOptions,
} from './tasks/engine.ts';
