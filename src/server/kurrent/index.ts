export { authenticateByTokens } from './authenticate-by-tokens.ts';
export { isLoopback } from '../http/reach.ts';
export { kurrentStoreOptions } from './kurrent-server.ts';
export {
  kurrentLimits,
  type KurrentCredentials,
  type KurrentIdentity,
  type KurrentLimits,
  type KurrentServer,
  type KurrentServerOptions,
} from './kurrent-server.ts';
export { startKurrentServer } from './start-kurrent-server.ts';
