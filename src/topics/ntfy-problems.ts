// Rejections of publishers and readers, with ntfy's codes and texts, on which clients branch.

import { hasCode, MillraceError } from '../foundation/error.ts';

/** The fields and their order are ntfy's. */
export interface NtfyProblem {
  readonly code: number;
  /** The HTTP status: the first three digits of the code. */
  readonly http: number;
  readonly error: string;
  readonly link: string | undefined;
}

/** The link is below https://ntfy.sh/docs. */
type ProblemRow = readonly [code: number, error: string, link?: string];

const scheduled = '/publish/#scheduled-delivery';
const attachments = '/publish/#attachments';
const templating = '/publish/#message-templating';
const limitations = '/publish/#limitations';
const authentication = '/publish/#authentication';

const problems = {
  invalid: [40000, 'invalid request'],
  emailDisabled: [40001, 'e-mail notifications are not enabled', '/config/#e-mail-notifications'],
  delayWithoutCache: [40002, 'cannot disable cache for delayed message'],
  delayWithEmail: [40003, 'delayed e-mail notifications are not supported'],
  delayUnreadable: [40004, 'invalid delay parameter: unable to parse delay', scheduled],
  delayTooSmall: [40005, 'invalid delay parameter: too small, please refer to the docs', scheduled],
  delayTooLarge: [40006, 'invalid delay parameter: too large, please refer to the docs', scheduled],
  priorityInvalid: [40007, 'invalid priority parameter', '/publish/#message-priority'],
  sinceInvalid: [40008, 'invalid since parameter', '/subscribe/api/#fetch-cached-messages'],
  topicInvalid: [40009, 'invalid request: topic invalid'],
  topicDisallowed: [40010, 'invalid request: topic name is not allowed'],
  messageNotUtf8: [40011, 'invalid request: message must be UTF-8 encoded'],
  attachmentUrlInvalid: [40013, 'invalid request: attachment URL is invalid', attachments],
  attachmentsDisallowed: [
    40014,
    'invalid request: attachments not allowed',
    '/config/#attachments',
  ],
  attachmentExpiresEarly: [
    40015,
    'invalid request: attachment expiry before delayed delivery date',
    scheduled,
  ],
  notWebSocket: [
    40016,
    'invalid request: client not using the websocket protocol',
    '/subscribe/api/#websockets',
  ],
  actionsInvalid: [40018, 'invalid request: actions invalid', '/publish/#action-buttons'],
  matrixInvalid: [40019, 'invalid request: Matrix JSON invalid', '/publish/#matrix-gateway'],
  iconUrlInvalid: [40021, 'invalid request: icon URL is invalid', '/publish/#icons'],
  jsonInvalid: [40024, 'invalid request: request body must be valid JSON'],
  permissionInvalid: [40025, 'invalid request: incorrect permission string'],
  tierUnknown: [40030, 'invalid request: tier does not exist'],
  userUnknown: [40031, 'invalid request: user does not exist'],
  callsDisabled: [40032, 'invalid request: calling is disabled', '/config/#phone-calls'],
  templateTooLongAfter: [
    40041,
    'invalid request: message or title is too large after replacing template',
    templating,
  ],
  templateBodyNotJson: [
    40042,
    'invalid request: message body must be JSON if templating is enabled',
    templating,
  ],
  templateInvalid: [40043, 'invalid request: could not parse template', templating],
  templateDisallowed: [
    40044,
    'invalid request: template contains disallowed function calls, e.g. template, call, define, or block',
    templating,
  ],
  templateFailed: [40045, 'invalid request: template execution failed', templating],
  templateUnknown: [40047, 'invalid request: template file not found', templating],
  sequenceIdInvalid: [
    40049,
    'invalid request: sequence ID invalid',
    '/publish/#updating-deleting-notifications',
  ],
  emailInvalid: [
    40050,
    'invalid request: invalid e-mail address',
    '/publish/#e-mail-notifications',
  ],
  anonymousEmail: [
    40053,
    'invalid request: anonymous email sending is not allowed',
    '/publish/#e-mail-notifications',
  ],
  templateTimeout: [40055, 'invalid request: template execution timed out', templating],
  templateTooLarge: [40056, 'invalid request: template too large', templating],
  unauthorized: [40101, 'unauthorized', authentication],
  forbidden: [40301, 'forbidden', authentication],
  pageNotFound: [40401, 'page not found'],
  userExists: [40901, 'conflict: user already exists'],
  userProvisioned: [40905, 'conflict: cannot change or delete provisioned user'],
  attachmentTooLarge: [41301, 'attachment too large, or bandwidth limit reached', limitations],
  matrixTooLarge: [41302, 'Matrix request is larger than the max allowed length'],
  jsonTooLarge: [41303, 'JSON body too large'],
  tooManyRequests: [42901, 'limit reached: too many requests', limitations],
  tooManyEmails: [42902, 'limit reached: too many emails', limitations],
  tooManySubscriptions: [42903, 'limit reached: too many active subscriptions', limitations],
  tooManyTopics: [
    42904,
    'limit reached: the total number of topics on the server has been reached, please contact the admin',
    limitations,
  ],
  bandwidthReached: [42905, 'limit reached: daily bandwidth reached', limitations],
  tooManyMessages: [42908, 'limit reached: daily message quota reached', limitations],
  tooManyAuthFailures: [42909, 'limit reached: too many auth failures', limitations],
  tooManyNewTopics: [42911, 'limit reached: too many new topics, please wait', limitations],
  internal: [50001, 'internal server error'],
  baseUrlMissing: [
    50003,
    'internal server error: base-url must be be configured for this feature',
    '/config/',
  ],
} as const satisfies Record<string, ProblemRow>;

export type NtfyProblemName = keyof typeof problems;

/** What ntfy answers to an error. */
export function problemOf(error: unknown): NtfyProblem {
  if (!hasCode(error, 'NOTIFY_REJECTED')) return toProblem(problems.internal);
  const name = String(error.details['problem']) as NtfyProblemName;
  return { ...toProblem(problems[name] ?? problems.internal), error: error.message };
}

function toProblem([code, error, link]: ProblemRow): NtfyProblem {
  return { code, http: Math.floor(code / 100), error, link: link && `https://ntfy.sh/docs${link}` };
}

/** The error of a rejected request; `more` is appended to ntfy's text. */
export function ntfyError(name: NtfyProblemName, more?: string): MillraceError {
  const [, error] = problems[name];
  const text = more === undefined ? error : `${error}; ${more}`;
  return new MillraceError('NOTIFY_REJECTED', text, { details: { problem: name } });
}
