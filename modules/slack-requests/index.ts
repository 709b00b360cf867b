// The names that applications use.

export { configureWorkspace } from './config-events.ts';
export { createRequest } from './message-request-events.ts';
export type { RequestDocument } from './message-request-projection.ts';
export { createSecretBox, parseSecretKeys } from './secret-box.ts';
export { slackRequestMetrics, slackRequests, type SlackRequestsOptions } from './slack-requests.ts';
