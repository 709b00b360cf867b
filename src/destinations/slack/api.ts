// Calls Slack's Web API with Slack's client. Retries of that client are off, because they could post twice. Requests go
// through our HTTP client, which follows no redirects, honours the signal, and reports whether a failed request was sent.

import type { FetchFunction, Logger } from '@slack/web-api';
import type { Dead, Retry } from '../../delivery/delivery-outcome.ts';
import { parseRetryAfter } from '../../delivery/http-outcome.ts';
import { outcomeOfFailure, type HttpClient } from '../../delivery/http-post.ts';
import type { Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { loadDriver } from '../../foundation/load-driver.ts';

export type SlackResult =
  | { readonly kind: 'ok'; readonly body: object }
  | { readonly kind: 'failed'; readonly outcome: Retry | Dead; readonly code?: string | undefined };

export interface SlackCall {
  readonly method:
    | 'auth.test'
    | 'chat.postMessage'
    | 'conversations.history'
    | 'conversations.open'
    | 'conversations.replies';
  readonly token: string;
  readonly fields: Record<string, unknown>;
  readonly signal: AbortSignal;
}

export type SlackApi = (call: SlackCall) => Promise<SlackResult>;

export interface SlackMessage {
  readonly channel: string;
  /** Shown in notifications, also if the message has blocks. */
  readonly text: string;
  readonly blocks?: readonly object[] | undefined;
  /** Posts as a reply in this thread. */
  readonly threadTs?: string | undefined;
}

export const slackLimits = { lookBackMax: 200, metadataType: 'millrace_message' } as const;

/** The fields of a post with our id in its metadata. */
export function postFields(
  { channel, text, blocks, threadTs }: SlackMessage,
  id: string,
): SlackCall['fields'] {
  const metadata = { event_type: slackLimits.metadataType, event_payload: { id } };
  return { channel, text, blocks, thread_ts: threadTs, metadata };
}

export function historyMethod(threadTs: string | undefined): SlackCall['method'] {
  return threadTs === undefined ? 'conversations.history' : 'conversations.replies';
}

/** The `ts` of the message with our id in a page of the history. */
export function postedAs(page: object, id: string): string | undefined {
  const { messages } = page as { messages?: unknown };
  const all: readonly HistoryMessage[] = Array.isArray(messages) ? messages : [];
  const found = all.find(
    ({ metadata }) =>
      metadata?.event_type === slackLimits.metadataType && metadata.event_payload?.id === id,
  );
  return typeof found?.ts === 'string' ? found.ts : undefined;
}

interface HistoryMessage {
  readonly ts?: unknown;
  readonly metadata?: {
    readonly event_type?: unknown;
    readonly event_payload?: { readonly id?: unknown };
  };
}

/** Error codes of a token that may not read the history, so that a retry of the lookup fails too. */
export const historyForbidden: ReadonlySet<string | undefined> = new Set([
  'missing_scope',
  'not_allowed_token_type',
  'no_permission',
]);

export function slackBaseUrl(text = 'https://slack.com/api/'): URL {
  if (!URL.canParse(text)) throw new MillraceError('CONFIG_INVALID', `invalid apiUrl '${text}'`);
  return new URL(text.endsWith('/') ? text : `${text}/`);
}

/** The limit of a response is high, because a channel history with metadata is long. */
const answerBytesMax = 4 * 1_024 * 1_024;

/** The HTTP result of the last request of a call. */
interface HttpResult {
  failure?: unknown;
  status?: number;
  retryAfter?: string | undefined;
}

export async function createSlackApi(
  client: HttpClient,
  apiUrl: URL,
  clock: Clock,
): Promise<SlackApi> {
  const { WebClient, LogLevel } = await loadDriver(
    '@slack/web-api',
    () => import('@slack/web-api'),
  );
  // The log of the client is off: the outcome of the delivery contains the same error.
  const silent: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
    setLevel: () => undefined,
    getLevel: () => LogLevel.ERROR,
    setName: () => undefined,
  };

  function fetchWith(signal: AbortSignal, result: HttpResult, fresh: boolean): FetchFunction {
    return async (url, { headers = {}, body } = {}) => {
      try {
        const posted = await client.post({
          url: new URL(url),
          headers,
          body: typeof body === 'string' ? body : '',
          signal,
          answerBytesMax,
          fresh,
        });
        result.status = posted.status;
        result.retryAfter = posted.headers['retry-after'];
        return responseOf(String(url), posted);
      } catch (error) {
        result.failure = error;
        throw error;
      }
    };
  }

  return async ({ method, token, fields, signal }) => {
    const result: HttpResult = {};
    const slack = new WebClient(token, {
      slackApiUrl: apiUrl.href,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      allowAbsoluteUrls: false,
      logger: silent,
      // On a reused connection, Node may repeat the request, which would post twice.
      fetch: fetchWith(signal, result, method === 'chat.postMessage'),
    });
    try {
      return { kind: 'ok', body: await slack.apiCall(method, fields) };
    } catch (error) {
      return failureOf(error, result, clock.now());
    }
  };
}

function failureOf(error: unknown, result: HttpResult, nowMs: number): SlackResult {
  if (result.failure !== undefined) return failed(outcomeOfFailure(result.failure));
  const { status = 0, retryAfter } = result;
  const afterMs = parseRetryAfter(retryAfter, nowMs);
  const wait = afterMs === undefined ? {} : { afterMs, throttled: true };
  if (status === 429) {
    return failed({ kind: 'retry', error: 'ratelimited', ...wait }, 'ratelimited');
  }
  const code = codeOf(error);
  if (code === undefined) {
    // An error page of a gateway, or a truncated response: Slack may have posted the message.
    const reason = `HTTP ${status} without a Slack response`;
    return failed({ kind: 'retry', error: reason, ambiguous: true, ...wait });
  }
  const kind = classifySlackError(code);
  if (kind === 'permanent') return failed({ kind: 'dead', error: code }, code);
  // Slack does not say whether a call that ends with 5xx and a code had its effect.
  const unclear = kind === 'ambiguous' || status >= 500 ? { ambiguous: true } : {};
  return failed({ kind: 'retry', error: code, ...unclear, ...wait }, code);
}

function failed(outcome: Retry | Dead, code?: string): SlackResult {
  return { kind: 'failed', outcome, code };
}

/** For an unparsable response, the client puts the response body in place of the code. */
function codeOf(error: unknown): string | undefined {
  const { data, body } = error as { data?: { error?: unknown }; body?: { error?: unknown } | null };
  const code = data?.error ?? body?.error;
  return typeof code === 'string' && /^[a-z][a-z0-9_]*$/.test(code) ? code : undefined;
}

type Response = Awaited<ReturnType<FetchFunction>>;
type Posted = Awaited<ReturnType<HttpClient['post']>>;

function responseOf(url: string, { status, headers, body }: Posted): Response {
  const bytes = Buffer.from(body);
  const texts = Object.entries(headers).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return {
    ok: status >= 200 && status < 300,
    status,
    statusText: '',
    url,
    headers: new Headers(texts),
    arrayBuffer: async () => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    json: async () => JSON.parse(body) as unknown,
    text: async () => body,
  };
}

/**
 * `permanent`: a retry fails too. `transient`: the message was not posted, and a retry can succeed. `ambiguous`: the
 * message may have been posted.
 */
export type SlackErrorKind = 'permanent' | 'transient' | 'ambiguous';

const permanent: ReadonlySet<string> = new Set([
  'as_user_not_supported',
  'cannot_reply_to_message',
  'channel_not_found',
  'invalid_arg_name',
  'invalid_arguments',
  'invalid_array_arg',
  'invalid_attachments',
  'invalid_blocks',
  'invalid_blocks_format',
  'invalid_charset',
  'invalid_form_data',
  'invalid_json',
  'invalid_metadata_filter_keys',
  'invalid_metadata_format',
  'invalid_metadata_schema',
  'invalid_post_type',
  'is_archived',
  'is_inactive',
  'json_not_object',
  'markdown_text_conflict',
  'messages_tab_disabled',
  'metadata_must_be_sent_from_app',
  'metadata_too_large',
  'method_deprecated',
  'missing_post_type',
  'msg_blocks_too_long',
  'msg_too_long',
  'no_dual_broadcast_content_update',
  'no_text',
  'not_in_channel',
  'restricted_action',
  'restricted_action_non_threadable_channel',
  'restricted_action_read_only_channel',
  'restricted_action_thread_locked',
  'restricted_action_thread_only_channel',
  'slack_connect_blocked_file_type',
  'slack_connect_canvas_sharing_blocked',
  'slack_connect_file_link_sharing_blocked',
  'slack_connect_lists_sharing_blocked',
  'thread_not_found',
  'too_many_attachments',
  'too_many_contact_cards',
  'unknown_method',
  'user_not_found',
]);

/** Error codes after which, by Slack's documentation, part of the call may have succeeded. */
const ambiguous: ReadonlySet<string> = new Set(['fatal_error', 'internal_error']);

/**
 * Classifies an error code of Slack's Web API. A wrong token is transient, because an operator can replace it without
 * changing the message. Unknown codes are transient.
 *
 * @example
 * import { classifySlackError } from 'millrace/destinations/slack';
 *
 * console.log(classifySlackError('channel_not_found')); // permanent
 */
export function classifySlackError(code: string): SlackErrorKind {
  if (permanent.has(code)) return 'permanent';
  return ambiguous.has(code) ? 'ambiguous' : 'transient';
}
