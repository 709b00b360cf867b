export { redisBreakerStore, type RedisBreakerStoreOptions } from './redis-breaker-store.ts';
export { redisBus, type RedisBusOptions } from './redis-bus.ts';
export type { RedisClient, RedisConnectionOptions } from './redis-connection.ts';
export { redisKeyStore } from './redis-key-store.ts';
export { redisLeases, type RedisLeases } from './redis-leases.ts';
export { redisReadModels, type RedisReadModelsOptions } from './redis-read-models.ts';
export { redisMirror } from './redis-mirror.ts';
export { redisSagaIndex, type RedisSagaIndex } from './redis-saga-index.ts';
export {
  redisStreamDestination,
  redisStreamLimits,
  type RedisStreamOptions,
} from './redis-stream-destination.ts';
export { redisTaskEngine, redisTasks, type RedisTasksOptions } from './redis-tasks.ts';
