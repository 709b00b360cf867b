export { redisBus, type RedisBusOptions } from './bus/bus.ts';
export type { RedisClient, RedisConnectionOptions } from './connection/connection.ts';
export { redisBreakerStore, type RedisBreakerStoreOptions } from './keys/breaker-store.ts';
export { redisKeyStore } from './keys/key-store.ts';
export { redisLeases, type RedisLeases } from './leases/leases.ts';
export { redisMirror } from './mirror.ts';
export { redisReadModels, type RedisReadModelsOptions } from './read-models/read-models.ts';
export { redisSagaIndex, type RedisSagaIndex } from './sagas/saga-index.ts';
export {
  redisStreamDestination,
  redisStreamLimits,
  type RedisStreamOptions,
} from '../../destinations/redis-stream/destination.ts';
export { redisTaskEngine, redisTasks, type RedisTasksOptions } from './tasks/tasks.ts';
