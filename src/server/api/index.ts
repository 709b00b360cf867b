export { startApi, type ApiOptions, type ApiServer } from './start-api.ts';
export type { ApiPlatform } from './api-context.ts';
export { wsLimits } from '../http/ws-server.ts';
export { wsCloseCodes, type WsLimits } from '../http/ws-connection.ts';
