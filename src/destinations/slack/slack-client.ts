// Slack's Web API for whoever keeps its own books: one call, one outcome, nothing tried again. A message carries
// an id of ours in its metadata, by which it is found again in the channel.

import type { Dead, Retry } from '../../delivery/delivery-outcome.ts';
import { createHttpClient } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { createSlackApi, type SlackApi } from './slack-api.ts';
import { mayNotLook, slackBaseUrl, slackLimits, type SlackMessage } from './slack-destination.ts';

export interface SlackClientOptions {
  /** Default: `https://slack.com/api/`. */
  readonly apiUrl?: string | undefined;
  /** Of one call. Default: 10 s. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock;
}

export type SlackPosted =
  | { readonly kind: 'sent'; readonly ts: string; readonly channel: string }
  | Retry
  | Dead;

export interface SlackLookup {
  readonly channel: string;
  readonly threadTs?: string | undefined;
  /** Of ours, as it was posted with. */
  readonly id: string;
  /** Not before it can the message have been posted; some minutes are taken off for clocks that differ. */
  readonly sinceMs: number;
}

export type SlackFound =
  | { readonly kind: 'found'; readonly ts: string; readonly channel: string }
  /** The whole time was looked through. */
  | { readonly kind: 'absent' }
  /** It cannot be told, now or later: no right to look, or too many messages since. */
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
  /** Whether the token is good, and whose it is. */
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
 * Opens a client of Slack. Tokens come with each call and are kept nowhere.
 *
 * @example
 * import { createSlackClient } from 'millrace/adapters/slack';
 *
 * await using slack = await createSlackClient();
 * const { signal } = new AbortController();
 * const posted = await slack.post({ channel: 'C0123', text: 'Hi', id: 'r-1' }, { token: 'xoxb-…', signal });
 * console.log(posted.kind); // sent, retry (perhaps ambiguous), dead
 */
export async function createSlackClient(options: SlackClientOptions = {}): Promise<SlackClient> {
  const { clock = systemClock, timeoutMs = slackClientLimits.timeoutMs } = options;
  const http = createHttpClient();
  const ask = await createSlackApi(http, slackBaseUrl(options.apiUrl), clock);

  const call: SlackApi = async (request) => {
    const over = new AbortController();
    const done = new AbortController();
    const late = new MillraceError(
      'REQUEST_TIMEOUT',
      `Slack gave no answer within ${timeoutMs} ms`,
    );
    clock.sleep(timeoutMs, done.signal).then(
      () => over.abort(late),
      () => undefined,
    );
    try {
      return await ask({ ...request, signal: AbortSignal.any([request.signal, over.signal]) });
    } finally {
      done.abort();
    }
  };

  return {
    async post({ channel, text, blocks, threadTs, id }, { token, signal }) {
      const answer = await call({
        method: 'chat.postMessage',
        token,
        signal,
        fields: {
          channel,
          text,
          ...(blocks === undefined ? {} : { blocks }),
          ...(threadTs === undefined ? {} : { thread_ts: threadTs }),
          metadata: { event_type: slackLimits.metadataType, event_payload: { id } },
        },
      });
      if (answer.kind === 'failed') return answer.outcome;
      const { ts, channel: place } = answer.body as { ts?: unknown; channel?: unknown };
      if (typeof ts !== 'string') {
        return { kind: 'retry', error: 'an answer without ts', ambiguous: true };
      }
      return { kind: 'sent', ts, channel: typeof place === 'string' ? place : channel };
    },
    find: (lookup, { token, signal }) =>
      findMessage(lookup, (method, fields) => call({ method, token, signal, fields })),
    async test({ token, signal }) {
      const answer = await call({ method: 'auth.test', token, signal, fields: {} });
      if (answer.kind === 'failed') return answer.outcome;
      const { team } = answer.body as { team?: unknown };
      return { kind: 'ok', team: typeof team === 'string' ? team : '' };
    },
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}

type Ask = (
  method: 'conversations.history' | 'conversations.open' | 'conversations.replies',
  fields: Record<string, unknown>,
) => ReturnType<SlackApi>;

async function findMessage(lookup: SlackLookup, ask: Ask): Promise<SlackFound> {
  const { threadTs, id, sinceMs } = lookup;
  let { channel } = lookup;
  // A person has no history; the conversation with that person has.
  if (/^[UW]/.test(channel)) {
    const opened = await ask('conversations.open', { users: channel });
    if (opened.kind === 'failed') return notLooked(opened);
    channel = String((opened.body as { channel?: { id?: unknown } }).channel?.id);
  }
  let cursor = '';
  for (let page = 0; page < slackClientLimits.pagesMax; page += 1) {
    const answer = await ask(
      threadTs === undefined ? 'conversations.history' : 'conversations.replies',
      {
        channel,
        limit: slackClientLimits.pageSize,
        include_all_metadata: true,
        oldest: ((sinceMs - slackClientLimits.clockSkewMs) / 1_000).toFixed(6),
        ...(threadTs === undefined ? {} : { ts: threadTs }),
        ...(cursor === '' ? {} : { cursor }),
      },
    );
    if (answer.kind === 'failed') return notLooked(answer);
    const { messages, response_metadata: more } = answer.body as History;
    const ts = messages?.find(
      ({ metadata }) =>
        metadata?.event_type === slackLimits.metadataType && metadata.event_payload?.id === id,
    )?.ts;
    if (typeof ts === 'string') return { kind: 'found', ts, channel };
    cursor = more?.next_cursor ?? '';
    if (cursor === '') return { kind: 'absent' };
  }
  return { kind: 'unknowable', error: 'too_many_messages' };
}

interface History {
  readonly messages?: readonly {
    readonly ts?: unknown;
    readonly metadata?: {
      readonly event_type?: unknown;
      readonly event_payload?: { readonly id?: unknown };
    };
  }[];
  readonly response_metadata?: { readonly next_cursor?: string };
}

function notLooked({
  outcome,
  code,
}: {
  readonly outcome: Retry | Dead;
  readonly code?: string;
}): SlackFound {
  if (outcome.kind === 'retry' && !mayNotLook.has(code)) {
    // Nothing was posted by looking.
    const { ambiguous: _none, ...rest } = outcome;
    return rest;
  }
  return { kind: 'unknowable', error: outcome.error };
}
