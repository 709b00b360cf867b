export {
  startHttpServer,
  type Caller,
  type HttpLimits,
  type HttpServer,
  type HttpServerOptions,
  httpLimits,
} from './http-server.ts';
export {
  checkAccess,
  tenantFor,
  type Access,
  type Authenticate,
  type Principal,
} from '../../platform/modules/principal.ts';
export type { ProblemDetails } from '../../platform/modules/route.ts';
export {
  route,
  type Answer,
  type AnswerInfo,
  type ApiRequest,
  type ErrorShape,
  type JsonAnswer,
  type Method,
  type Route,
  type StreamAnswer,
} from '../../platform/modules/route.ts';
