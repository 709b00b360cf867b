export {
  redisStreamDestination,
  redisStreamLimits,
  type RedisStreamOptions,
} from './destination.ts';
