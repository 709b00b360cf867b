// Slack: chat.postMessage. It has no idempotency key, so the key travels in the message's metadata, and
// whoever tries again looks for it in the channel first.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { DeliveryContext, Destination } from '../../delivery/destination.ts';
import { createHttpClient } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { createSlackApi } from './slack-api.ts';

export interface SlackMessage {
  readonly channel: string;
  /** What notifications show, also beside blocks. */
  readonly text: string;
  readonly blocks?: readonly object[];
  /** Answers in this thread. */
  readonly threadTs?: string;
}

export interface SlackOptions {
  /** A bot's token, or who knows the one of a message's workspace. */
  readonly token: string | ((message: DeliveryMessage) => Promise<string>);
  /** What is posted, and where; undefined: nothing is. */
  readonly compose: (
    message: DeliveryMessage,
  ) => SlackMessage | undefined | Promise<SlackMessage | undefined>;
  /** Default: `https://slack.com/api/`. */
  readonly apiUrl?: string;
  /** How many of the channel's last messages a repeated attempt looks at. 0: it posts at once. */
  readonly lookBackMax?: number;
  readonly clock?: Clock;
  readonly observer?: Observer;
}

export const slackLimits = { lookBackMax: 200, metadataType: 'millrace_message' } as const;

/** The history cannot be read with this token: neither now nor later. */
export const mayNotLook: ReadonlySet<string | undefined> = new Set([
  'missing_scope',
  'not_allowed_token_type',
  'no_permission',
]);

/**
 * A destination that posts to Slack. The bot needs `chat:write`, and the scopes of
 * `conversations.history` for repeated attempts to see what is there already.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { slackDestination } from 'millrace/adapters/slack';
 *
 * await using slack = await slackDestination({
 *   token: 'xoxb-…',
 *   compose: ({ payload }) => ({ channel: 'C0123456789', text: `Paid: ${String(payload['amount'])}` }),
 * });
 * const { deliver } = createDelivery({
 *   destinations: { 'slack:payments': { send: slack, rateLimit: { perSecond: 1, burst: 3 } } },
 * });
 */
export async function slackDestination(
  options: SlackOptions,
): Promise<Destination & AsyncDisposable> {
  const { token, compose, clock = systemClock, observer = silentObserver } = options;
  const { lookBackMax = slackLimits.lookBackMax } = options;
  const client = createHttpClient();
  const call = await createSlackApi(client, slackBaseUrl(options.apiUrl), clock);

  /** The `ts` of what an earlier attempt posted, if it did; or why that cannot be told. */
  async function find(
    { channel, threadTs }: SlackMessage,
    bearer: string,
    { idempotencyKey, signal }: DeliveryContext,
  ): Promise<DeliveryOutcome | undefined> {
    const answer = await call({
      method: threadTs === undefined ? 'conversations.history' : 'conversations.replies',
      token: bearer,
      signal,
      fields: {
        channel,
        limit: lookBackMax,
        include_all_metadata: true,
        ...(threadTs === undefined ? {} : { ts: threadTs }),
      },
    });
    if (answer.kind === 'ok') {
      const ts = postedAs(answer.body, idempotencyKey);
      return ts === undefined ? undefined : { kind: 'sent', receipt: ts };
    }
    if (mayNotLook.has(answer.code)) {
      observer.log?.warn({ code: answer.code }, 'slack history cannot be read; may post twice');
      return undefined;
    }
    // Nothing was posted by this attempt; whether by an earlier one is still open.
    return answer.outcome;
  }

  const send: Destination = async (message, context) => {
    const { idempotencyKey, isRepeated, signal } = context;
    const post = await compose(message);
    if (post === undefined) return { kind: 'sent', skipped: 'nothing is to be posted for it' };
    const bearer = typeof token === 'string' ? token : await token(message);
    signal.throwIfAborted();
    if (isRepeated && lookBackMax > 0) {
      const known = await find(post, bearer, context);
      if (known !== undefined) return known;
    }
    const { channel, text, blocks, threadTs } = post;
    const answer = await call({
      method: 'chat.postMessage',
      token: bearer,
      signal,
      fields: {
        channel,
        text,
        ...(blocks === undefined ? {} : { blocks }),
        ...(threadTs === undefined ? {} : { thread_ts: threadTs }),
        metadata: { event_type: slackLimits.metadataType, event_payload: { id: idempotencyKey } },
      },
    });
    if (answer.kind === 'failed') return answer.outcome;
    const { ts } = answer.body as { ts?: unknown };
    return { kind: 'sent', ...(typeof ts === 'string' ? { receipt: ts } : {}) };
  };
  return Object.assign(send, { [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() });
}

interface HistoryMessage {
  readonly ts?: unknown;
  readonly metadata?: {
    readonly event_type?: unknown;
    readonly event_payload?: { readonly id?: unknown };
  };
}

function postedAs(body: object, idempotencyKey: string): string | undefined {
  const { messages } = body as { messages?: unknown };
  const all: readonly HistoryMessage[] = Array.isArray(messages) ? messages : [];
  const found = all.find(
    ({ metadata }) =>
      metadata?.event_type === slackLimits.metadataType &&
      metadata.event_payload?.id === idempotencyKey,
  );
  return typeof found?.ts === 'string' ? found.ts : undefined;
}

export function slackBaseUrl(text = 'https://slack.com/api/'): URL {
  if (!URL.canParse(text)) throw new MillraceError('CONFIG_INVALID', `'${text}' is not a URL`);
  return new URL(text.endsWith('/') ? text : `${text}/`);
}
