export { openRedis, type RedisEngine, type RedisOptions } from './open-redis.ts';
export type { RedisClient } from './connection/connection.ts';
export type { RedisSagaIndex } from './sagas/saga-index.ts';
