export {
  slackRequests,
  slackRequestsDefaults,
  type SlackRequestsOptions,
  slackRequestMetrics,
} from './slack-requests.ts';
export {
  beginAttempt,
  createRequest,
  deferAttempt,
  queueRequest,
  recordFailed,
  recordSent,
  requestCreated,
  requestFailed,
  requestQueued,
  requestSent,
  requestUpdated,
  updateRequest,
  type RequestContent,
} from './message-request-events.ts';
export {
  messageRequest,
  requestStatuses,
  type RequestState,
  type RequestStatus,
} from './message-request.ts';
export { requestProjection, type RequestDocument } from './message-request-projection.ts';
export {
  configureApp,
  configureChannel,
  configureTemplate,
  configureWorkspace,
  removeApp,
  removeChannel,
  removeTemplate,
  removeWorkspace,
  resealApp,
  resealWorkspace,
  type AppConfig,
  type ChannelConfig,
  type TemplateConfig,
  type WorkspaceConfig,
} from './config-events.ts';
export {
  app,
  channel,
  template,
  workspace,
  appProjection,
  channelProjection,
  templateProjection,
  workspaceProjection,
  type AppDocument,
  type ChannelDocument,
  type TemplateDocument,
  type WorkspaceDocument,
} from './config.ts';
export { createSecretBox, parseSecretKeys, type SecretBox, type SecretKey } from './secret-box.ts';
export { escapeMrkdwn, renderTemplate, type Rendered, type Rendering } from './render-template.ts';
export { readSendJob, type ReadJob } from './dispatcher.ts';
