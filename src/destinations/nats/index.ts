export {
  natsDestination,
  natsDestinationLimits,
  type NatsDestinationOptions,
} from './destination.ts';
