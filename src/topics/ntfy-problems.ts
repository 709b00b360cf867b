// Refusals of publishers and readers, with ntfy's codes and texts, on which clients branch.

import { MillraceError } from '../foundation/error.ts';

/** The number's first three digits are the HTTP status. */
export interface NtfyProblem {
  readonly code: number;
  readonly error: string;
  /** Below https://ntfy.sh/docs. */
  readonly link?: string;
}

const scheduled = '/publish/#scheduled-delivery';
const attachments = '/publish/#attachments';
const templating = '/publish/#message-templating';
const limitations = '/publish/#limitations';
const authentication = '/publish/#authentication';

export const ntfyProblems = {
  invalid: { code: 40000, error: 'invalid request' },
  emailDisabled: {
    code: 40001,
    error: 'e-mail notifications are not enabled',
    link: '/config/#e-mail-notifications',
  },
  delayWithoutCache: { code: 40002, error: 'cannot disable cache for delayed message' },
  delayWithEmail: { code: 40003, error: 'delayed e-mail notifications are not supported' },
  delayUnreadable: {
    code: 40004,
    error: 'invalid delay parameter: unable to parse delay',
    link: scheduled,
  },
  delayTooSmall: {
    code: 40005,
    error: 'invalid delay parameter: too small, please refer to the docs',
    link: scheduled,
  },
  delayTooLarge: {
    code: 40006,
    error: 'invalid delay parameter: too large, please refer to the docs',
    link: scheduled,
  },
  priorityInvalid: {
    code: 40007,
    error: 'invalid priority parameter',
    link: '/publish/#message-priority',
  },
  sinceInvalid: {
    code: 40008,
    error: 'invalid since parameter',
    link: '/subscribe/api/#fetch-cached-messages',
  },
  topicInvalid: { code: 40009, error: 'invalid request: topic invalid' },
  topicDisallowed: { code: 40010, error: 'invalid request: topic name is not allowed' },
  messageNotUtf8: { code: 40011, error: 'invalid request: message must be UTF-8 encoded' },
  attachmentUrlInvalid: {
    code: 40013,
    error: 'invalid request: attachment URL is invalid',
    link: attachments,
  },
  attachmentsDisallowed: {
    code: 40014,
    error: 'invalid request: attachments not allowed',
    link: '/config/#attachments',
  },
  attachmentExpiresEarly: {
    code: 40015,
    error: 'invalid request: attachment expiry before delayed delivery date',
    link: scheduled,
  },
  notWebSocket: {
    code: 40016,
    error: 'invalid request: client not using the websocket protocol',
    link: '/subscribe/api/#websockets',
  },
  actionsInvalid: {
    code: 40018,
    error: 'invalid request: actions invalid',
    link: '/publish/#action-buttons',
  },
  matrixInvalid: {
    code: 40019,
    error: 'invalid request: Matrix JSON invalid',
    link: '/publish/#matrix-gateway',
  },
  iconUrlInvalid: {
    code: 40021,
    error: 'invalid request: icon URL is invalid',
    link: '/publish/#icons',
  },
  jsonInvalid: { code: 40024, error: 'invalid request: request body must be valid JSON' },
  permissionInvalid: { code: 40025, error: 'invalid request: incorrect permission string' },
  tierUnknown: { code: 40030, error: 'invalid request: tier does not exist' },
  userUnknown: { code: 40031, error: 'invalid request: user does not exist' },
  callsDisabled: {
    code: 40032,
    error: 'invalid request: calling is disabled',
    link: '/config/#phone-calls',
  },
  templateTooLongAfter: {
    code: 40041,
    error: 'invalid request: message or title is too large after replacing template',
    link: templating,
  },
  templateBodyNotJson: {
    code: 40042,
    error: 'invalid request: message body must be JSON if templating is enabled',
    link: templating,
  },
  templateInvalid: {
    code: 40043,
    error: 'invalid request: could not parse template',
    link: templating,
  },
  templateDisallowed: {
    code: 40044,
    error:
      'invalid request: template contains disallowed function calls, e.g. template, call, define, or block',
    link: templating,
  },
  templateFailed: {
    code: 40045,
    error: 'invalid request: template execution failed',
    link: templating,
  },
  templateUnknown: {
    code: 40047,
    error: 'invalid request: template file not found',
    link: templating,
  },
  sequenceIdInvalid: {
    code: 40049,
    error: 'invalid request: sequence ID invalid',
    link: '/publish/#updating-deleting-notifications',
  },
  emailInvalid: {
    code: 40050,
    error: 'invalid request: invalid e-mail address',
    link: '/publish/#e-mail-notifications',
  },
  anonymousEmail: {
    code: 40053,
    error: 'invalid request: anonymous email sending is not allowed',
    link: '/publish/#e-mail-notifications',
  },
  templateTimeout: {
    code: 40055,
    error: 'invalid request: template execution timed out',
    link: templating,
  },
  templateTooLarge: { code: 40056, error: 'invalid request: template too large', link: templating },
  unauthorized: { code: 40101, error: 'unauthorized', link: authentication },
  forbidden: { code: 40301, error: 'forbidden', link: authentication },
  pageNotFound: { code: 40401, error: 'page not found' },
  userExists: { code: 40901, error: 'conflict: user already exists' },
  userProvisioned: {
    code: 40905,
    error: 'conflict: cannot change or delete provisioned user',
  },
  attachmentTooLarge: {
    code: 41301,
    error: 'attachment too large, or bandwidth limit reached',
    link: limitations,
  },
  matrixTooLarge: {
    code: 41302,
    error: 'Matrix request is larger than the max allowed length',
  },
  jsonTooLarge: { code: 41303, error: 'JSON body too large' },
  tooManyRequests: {
    code: 42901,
    error: 'limit reached: too many requests',
    link: limitations,
  },
  tooManyEmails: { code: 42902, error: 'limit reached: too many emails', link: limitations },
  tooManySubscriptions: {
    code: 42903,
    error: 'limit reached: too many active subscriptions',
    link: limitations,
  },
  tooManyTopics: {
    code: 42904,
    error:
      'limit reached: the total number of topics on the server has been reached, please contact the admin',
    link: limitations,
  },
  bandwidthReached: {
    code: 42905,
    error: 'limit reached: daily bandwidth reached',
    link: limitations,
  },
  tooManyMessages: {
    code: 42908,
    error: 'limit reached: daily message quota reached',
    link: limitations,
  },
  tooManyAuthFailures: {
    code: 42909,
    error: 'limit reached: too many auth failures',
    link: limitations,
  },
  tooManyNewTopics: {
    code: 42911,
    error: 'limit reached: too many new topics, please wait',
    link: limitations,
  },
  internal: { code: 50001, error: 'internal server error' },
  baseUrlMissing: {
    code: 50003,
    error: 'internal server error: base-url must be be configured for this feature',
    link: '/config/',
  },
} as const satisfies Record<string, NtfyProblem>;

export type NtfyProblemName = keyof typeof ntfyProblems;

/** The error of a refused request; `more` is appended to ntfy's text. */
export function refused(name: NtfyProblemName, more?: string): MillraceError {
  const { error } = ntfyProblems[name];
  return new MillraceError('NOTIFY_REFUSED', more === undefined ? error : `${error}; ${more}`, {
    details: { problem: name },
  });
}
