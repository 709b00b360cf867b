export { startApi, type ApiOptions, type ApiServer } from './start-api.ts';
export type { ApiPlatform } from './api-context.ts';
export { wsCloseCodes, wsLimits, type WsLimits } from '../http/ws-connection.ts';
