export {
  slackDestination,
  slackLimits,
  type SlackMessage,
  type SlackOptions,
} from './slack-destination.ts';
export { classifySlackError, type SlackErrorKind } from './slack-error.ts';
