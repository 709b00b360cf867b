export {
  startHttpServer,
  type Caller,
  type HttpLimits,
  type HttpServer,
  type HttpServerOptions,
  httpLimits,
} from './http-server.ts';
export { checkAccess, type Authenticate } from '../../platform/modules/principal.ts';
