export {
  slackDestination,
  slackLimits,
  type SlackMessage,
  type SlackOptions,
} from './slack-destination.ts';
export {
  createSlackClient,
  slackClientLimits,
  type SlackClient,
  type SlackClientOptions,
  type SlackFound,
  type SlackLookup,
  type SlackPosted,
} from './slack-client.ts';
export { classifySlackError, type SlackErrorKind } from './slack-error.ts';
