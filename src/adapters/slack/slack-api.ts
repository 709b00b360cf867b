// One call of Slack's Web API over HTTPS, without any retries of its own: those would post twice.

import type { Dead, Retry } from '../../delivery/delivery-outcome.ts';
import { parseRetryAfter } from '../../delivery/http-outcome.ts';
import { outcomeOfFailure, type HttpClient } from '../../delivery/http-post.ts';
import type { Clock } from '../../foundation/clock.ts';
import { classifySlackError } from './slack-error.ts';

type SlackAnswer =
  | { readonly kind: 'ok'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'failed'; readonly outcome: Retry | Dead; readonly code?: string };

interface SlackCall {
  readonly method: 'chat.postMessage' | 'conversations.history' | 'conversations.replies';
  readonly token: string;
  readonly body: string;
  readonly contentType: string;
  readonly signal: AbortSignal;
}

export type SlackApi = (call: SlackCall) => Promise<SlackAnswer>;

/** A history with its metadata is long; this is what is read of an answer at most. */
const answerBytesMax = 4 * 1_024 * 1_024;

export function createSlackApi(client: HttpClient, baseUrl: URL, clock: Clock): SlackApi {
  return async ({ method, token, body, contentType, signal }) => {
    const posted = await client
      .post({
        url: new URL(method, baseUrl),
        headers: { authorization: `Bearer ${token}`, 'content-type': contentType },
        body,
        signal,
        answerBytesMax,
      })
      .catch((error: unknown) => outcomeOfFailure(error));
    if (!('status' in posted)) return { kind: 'failed', outcome: posted };
    const { status, headers } = posted;
    const afterMs = parseRetryAfter(headers['retry-after'], clock.now());
    const wait = afterMs === undefined ? {} : { afterMs, throttled: true };
    if (status === 429)
      return failed({ kind: 'retry', error: 'ratelimited', ...wait }, 'ratelimited');
    const answer = parsed(posted.body);
    if (answer?.['ok'] === true) return { kind: 'ok', body: answer };
    const code = answer?.['error'];
    if (typeof code !== 'string') {
      // A gateway's page, or half an answer: what happened behind it is not known.
      return failed({
        kind: 'retry',
        error: `HTTP ${status} without an answer`,
        ambiguous: true,
        ...wait,
      });
    }
    const kind = classifySlackError(code);
    if (kind === 'permanent') return failed({ kind: 'dead', error: code }, code);
    return failed(
      { kind: 'retry', error: code, ...(kind === 'ambiguous' ? { ambiguous: true } : {}), ...wait },
      code,
    );
  };
}

function failed(outcome: Retry | Dead, code?: string): SlackAnswer {
  return { kind: 'failed', outcome, ...(code === undefined ? {} : { code }) };
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}
