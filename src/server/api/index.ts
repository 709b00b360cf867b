export { startApi, type ApiOptions } from './start-api.ts';
export type { ApiPlatform } from './api-context.ts';
