// One call of Slack's Web API by Slack's own client, with its retries off: those would post twice. It speaks
// through our HTTP client, which follows no redirect, heeds the call's signal, and knows whether a request
// that got no answer was out.

import type { FetchFunction, Logger } from '@slack/web-api';
import type { Dead, Retry } from '../../delivery/delivery-outcome.ts';
import { parseRetryAfter } from '../../delivery/http-outcome.ts';
import { outcomeOfFailure, type HttpClient } from '../../delivery/http-post.ts';
import type { Clock } from '../../foundation/clock.ts';
import { loadDriver } from '../../foundation/load-driver.ts';
import { classifySlackError } from './slack-error.ts';

type SlackAnswer =
  | { readonly kind: 'ok'; readonly body: object }
  | { readonly kind: 'failed'; readonly outcome: Retry | Dead; readonly code?: string };

interface SlackCall {
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

export type SlackApi = (call: SlackCall) => Promise<SlackAnswer>;

/** A history with its metadata is long; this is what is read of an answer at most. */
const answerBytesMax = 4 * 1_024 * 1_024;

/** What the last request of a call met, below the client. */
interface Met {
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
  // What it would print, the outcome says.
  const silent: Logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
    setLevel: () => undefined,
    getLevel: () => LogLevel.ERROR,
    setName: () => undefined,
  };

  function fetchWith(signal: AbortSignal, met: Met, fresh: boolean): FetchFunction {
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
        met.status = posted.status;
        met.retryAfter = posted.headers['retry-after'];
        return responseOf(String(url), posted);
      } catch (error) {
        met.failure = error;
        throw error;
      }
    };
  }

  return async ({ method, token, fields, signal }) => {
    const met: Met = {};
    const slack = new WebClient(token, {
      slackApiUrl: apiUrl.href,
      retryConfig: { retries: 0 },
      rejectRateLimitedCalls: true,
      allowAbsoluteUrls: false,
      logger: silent,
      // A second one of the same would be a second message.
      fetch: fetchWith(signal, met, method === 'chat.postMessage'),
    });
    try {
      return { kind: 'ok', body: await slack.apiCall(method, fields) };
    } catch (error) {
      return answerOf(error, met, clock.now());
    }
  };
}

function answerOf(error: unknown, met: Met, nowMs: number): SlackAnswer {
  if (met.failure !== undefined) return failed(outcomeOfFailure(met.failure));
  const { status = 0, retryAfter } = met;
  const afterMs = parseRetryAfter(retryAfter, nowMs);
  const wait = afterMs === undefined ? {} : { afterMs, throttled: true };
  if (status === 429) {
    return failed({ kind: 'retry', error: 'ratelimited', ...wait }, 'ratelimited');
  }
  const code = codeOf(error);
  if (code === undefined) {
    // A gateway's page, or half an answer: what happened behind it is not known.
    const said = `HTTP ${status} without an answer`;
    return failed({ kind: 'retry', error: said, ambiguous: true, ...wait });
  }
  const kind = classifySlackError(code);
  if (kind === 'permanent') return failed({ kind: 'dead', error: code }, code);
  const unclear = kind === 'ambiguous' ? { ambiguous: true } : {};
  return failed({ kind: 'retry', error: code, ...unclear, ...wait }, code);
}

function failed(outcome: Retry | Dead, code?: string): SlackAnswer {
  return { kind: 'failed', outcome, ...(code === undefined ? {} : { code }) };
}

/** Where the client has no answer to parse it puts the page itself in the code's place. */
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
