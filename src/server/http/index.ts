export {
  startHttpServer,
  type HttpLimits,
  type HttpServer,
  type HttpServerOptions,
  httpLimits,
} from './http-server.ts';
export type { Caller } from './respond.ts';
export { checkAccess, type Authenticate } from '../../platform/modules/principal.ts';
