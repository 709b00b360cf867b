export { slackDestination, type SlackOptions } from './destination.ts';
export {
  createSlackClient,
  slackClientLimits,
  type SlackClient,
  type SlackClientOptions,
  type SlackFound,
  type SlackLookup,
  type SlackPosted,
} from './client.ts';
export { classifySlackError, slackLimits, type SlackErrorKind, type SlackMessage } from './api.ts';
