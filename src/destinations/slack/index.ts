export {
  slackDestination,
  slackLimits,
  type SlackMessage,
  type SlackOptions,
} from './destination.ts';
export {
  createSlackClient,
  slackClientLimits,
  type SlackClient,
  type SlackClientOptions,
  type SlackFound,
  type SlackLookup,
  type SlackPosted,
} from './client.ts';
export { classifySlackError, type SlackErrorKind } from './api.ts';
