// Delivers messages with chat.postMessage. Slack has no idempotency key, so the key is part of the message's metadata,
// and a retry first searches the channel for it.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { DeliveryContext, Destination } from '../../delivery/destination.ts';
import { createHttpClient } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import {
  createSlackApi,
  historyForbidden,
  historyMethod,
  postedAs,
  postFields,
  slackBaseUrl,
  slackLimits,
  type SlackMessage,
} from './api.ts';

export interface SlackOptions {
  /** A bot token, or a function that returns the token of the message's workspace. */
  readonly token: string | ((message: DeliveryMessage) => Promise<string>);
  /** Returns the Slack message; undefined: post none. */
  readonly compose: (
    message: DeliveryMessage,
  ) => SlackMessage | undefined | Promise<SlackMessage | undefined>;
  /** Default: `https://slack.com/api/`. */
  readonly apiUrl?: string | undefined;
  /** How many of the latest messages a retry searches. 0: it posts without a search. */
  readonly lookBackMax?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

/**
 * A destination that posts to Slack. The bot needs `chat:write`, and the scopes of `conversations.history`, with which
 * a retry finds a message that was already posted.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { slackDestination } from 'millrace/destinations/slack';
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

  /** The outcome if an earlier attempt posted the message, or if the lookup failed; undefined: post it. */
  async function find(
    { channel, threadTs }: SlackMessage,
    bearer: string,
    { idempotencyKey, signal }: DeliveryContext,
  ): Promise<DeliveryOutcome | undefined> {
    const result = await call({
      method: historyMethod(threadTs),
      token: bearer,
      signal,
      fields: { channel, limit: lookBackMax, include_all_metadata: true, ts: threadTs },
    });
    if (result.kind === 'ok') {
      const ts = postedAs(result.body, idempotencyKey);
      return ts === undefined ? undefined : { kind: 'sent', receipt: ts };
    }
    if (historyForbidden.has(result.code)) {
      observer.log?.warn(
        { code: result.code },
        'Slack history is not readable; a retry may post twice',
      );
      return undefined;
    }
    // Whether an earlier attempt posted the message is still unknown.
    return result.outcome;
  }

  const send: Destination = async (message, context) => {
    const { idempotencyKey, isDuplicate, signal } = context;
    const post = await compose(message);
    if (post === undefined) return { kind: 'sent', skipped: 'compose returned no message' };
    const bearer = typeof token === 'string' ? token : await token(message);
    signal.throwIfAborted();
    if (isDuplicate && lookBackMax > 0) {
      const known = await find(post, bearer, context);
      if (known !== undefined) return known;
    }
    const fields = postFields(post, idempotencyKey);
    const result = await call({ method: 'chat.postMessage', token: bearer, signal, fields });
    if (result.kind === 'failed') return result.outcome;
    const { ts } = result.body as { ts?: unknown };
    return { kind: 'sent', ...(typeof ts === 'string' ? { receipt: ts } : {}) };
  };
  return Object.assign(send, { [Symbol.asyncDispose]: () => client[Symbol.asyncDispose]() });
}
