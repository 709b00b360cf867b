export { openNats, type NatsEngine, type NatsOptions } from './open-nats.ts';
