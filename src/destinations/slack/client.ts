// Slack's Web API for callers that store outcomes and retry themselves: one outcome per call, without retries. A message
// has our id in its metadata, by which the message can be found in the channel.

import type { Dead, Retry } from '../../delivery/delivery-outcome.ts';
import { createHttpClient } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import {
  createSlackApi,
  historyForbidden,
  historyMethod,
  postedAs,
  postFields,
  slackBaseUrl,
  type SlackResult,
  type SlackApi,
  type SlackCall,
  type SlackMessage,
} from './api.ts';

export interface SlackClientOptions {
  /** Default: `https://slack.com/api/`. */
  readonly apiUrl?: string | undefined;
  /** Time limit of one call. Default: 10 s. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

export type SlackPosted =
  | { readonly kind: 'sent'; readonly ts: string; readonly channel: string }
  | Retry
  | Dead;

export interface SlackLookup {
  readonly channel: string;
  readonly threadTs?: string | undefined;
  /** Our id in the metadata of the message. */
  readonly id: string;
  /** The earliest possible time of the post; `clockSkewMs` is subtracted. */
  readonly sinceMs: number;
}

export type SlackFound =
  | { readonly kind: 'found'; readonly ts: string; readonly channel: string }
  /** The complete history since `sinceMs` does not contain the message. */
  | { readonly kind: 'absent' }
  /** Permanently unknown: the token may not read the history, or too many messages followed. */
  | { readonly kind: 'unknowable'; readonly error: string }
  | Retry;

export interface SlackClient extends AsyncDisposable {
  post(
    message: SlackMessage & { readonly id: string },
    call: { readonly token: string; readonly signal: AbortSignal },
  ): Promise<SlackPosted>;
  find(
    lookup: SlackLookup,
    call: { readonly token: string; readonly signal: AbortSignal },
  ): Promise<SlackFound>;
  /** Whether the token is valid, and the name of its workspace. */
  test(call: {
    readonly token: string;
    readonly signal: AbortSignal;
  }): Promise<{ readonly kind: 'ok'; readonly team: string } | Retry | Dead>;
}

export const slackClientLimits = {
  timeoutMs: 10_000,
  pageSize: 200,
  pagesMax: 20,
  clockSkewMs: 10 * 60_000,
} as const;

/**
 * Opens a Slack client. Each call takes a token; the client stores none.
 *
 * @example
 * import { createSlackClient } from 'millrace/destinations/slack';
 *
 * await using slack = await createSlackClient();
 * const { signal } = new AbortController();
 * const posted = await slack.post({ channel: 'C0123', text: 'Hi', id: 'r-1' }, { token: 'xoxb-…', signal });
 * console.log(posted.kind); // sent, retry (perhaps ambiguous), dead
 */
export async function createSlackClient(options: SlackClientOptions = {}): Promise<SlackClient> {
  const { clock = systemClock, timeoutMs = slackClientLimits.timeoutMs } = options;
  const http = createHttpClient();
  const callApi = await createSlackApi(http, slackBaseUrl(options.apiUrl), clock);

  const call: SlackApi = async (request) => {
    const timeout = new AbortController();
    const done = new AbortController();
    const late = new MillraceError(
      'REQUEST_TIMEOUT',
      `Slack did not respond within ${timeoutMs} ms`,
    );
    clock.sleep(timeoutMs, done.signal).then(
      () => timeout.abort(late),
      () => undefined,
    );
    try {
      return await callApi({
        ...request,
        signal: AbortSignal.any([request.signal, timeout.signal]),
      });
    } finally {
      done.abort();
    }
  };

  return {
    async post(message, { token, signal }) {
      const fields = postFields(message, message.id);
      const result = await call({ method: 'chat.postMessage', token, signal, fields });
      if (result.kind === 'failed') return result.outcome;
      const { ts, channel } = result.body as { ts?: unknown; channel?: unknown };
      if (typeof ts !== 'string') {
        return { kind: 'retry', error: 'the response contains no ts', ambiguous: true };
      }
      return { kind: 'sent', ts, channel: typeof channel === 'string' ? channel : message.channel };
    },
    find: (lookup, { token, signal }) =>
      findMessage(lookup, (method, fields) => call({ method, token, signal, fields })),
    async test({ token, signal }) {
      const result = await call({ method: 'auth.test', token, signal, fields: {} });
      if (result.kind === 'failed') return result.outcome;
      const { team } = result.body as { team?: unknown };
      return { kind: 'ok', team: typeof team === 'string' ? team : '' };
    },
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}

type CallMethod = (
  method: SlackCall['method'],
  fields: SlackCall['fields'],
) => ReturnType<SlackApi>;

async function findMessage(lookup: SlackLookup, call: CallMethod): Promise<SlackFound> {
  const { threadTs, id, sinceMs } = lookup;
  let { channel } = lookup;
  // The history belongs to the conversation with a user, not to the user id.
  if (/^[UW]/.test(channel)) {
    const opened = await call('conversations.open', { users: channel });
    if (opened.kind === 'failed') return lookupFailure(opened);
    channel = String((opened.body as { channel?: { id?: unknown } }).channel?.id);
  }
  let cursor = '';
  for (let page = 0; page < slackClientLimits.pagesMax; page += 1) {
    const result = await call(historyMethod(threadTs), {
      channel,
      limit: slackClientLimits.pageSize,
      include_all_metadata: true,
      oldest: ((sinceMs - slackClientLimits.clockSkewMs) / 1_000).toFixed(6),
      ts: threadTs,
      cursor: cursor || undefined,
    });
    if (result.kind === 'failed') return lookupFailure(result);
    const ts = postedAs(result.body, id);
    if (ts !== undefined) return { kind: 'found', ts, channel };
    const { response_metadata: more } = result.body as {
      response_metadata?: { next_cursor?: string };
    };
    cursor = more?.next_cursor ?? '';
    if (cursor === '') return { kind: 'absent' };
  }
  return { kind: 'unknowable', error: 'too_many_messages' };
}

function lookupFailure({ outcome, code }: Extract<SlackResult, { kind: 'failed' }>): SlackFound {
  if (outcome.kind === 'retry' && !historyForbidden.has(code)) {
    // A lookup posts nothing, so it is never ambiguous.
    const { ambiguous: _none, ...rest } = outcome;
    return rest;
  }
  return { kind: 'unknowable', error: outcome.error };
}
