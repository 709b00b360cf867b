// One attempt to deliver a batch: bounded in time, and whatever comes of it is a result for each message.

import type { Clock } from '../foundation/clock.ts';
import type { DeliveryResult } from './decide-delivery.ts';
import { deliverOnce, idempotencyKeyOf, resultOf, type Deliver } from './deliver-message.ts';
import type { ClaimedMessage } from './outbox-message.ts';

export interface DeliverBatchContext {
  readonly integrationType: string;
  /** Of each message, the same for every attempt; the receiver dedupes by it. */
  readonly idempotencyKeys: readonly string[];
  /** Fires when the time is up, and when the process must stop. */
  readonly signal: AbortSignal;
}

/**
 * Sends messages in the order in which they come, and gives back what became of each. To return nothing is
 * to have sent all of them; to throw is to have sent none. Where one fails, those behind it that have its
 * ordering key must not be sent: they are results of the same kind, with `attempted: false`.
 */
export type DeliverBatch = (
  messages: readonly ClaimedMessage[],
  context: DeliverBatchContext,
) => Promise<readonly DeliveryResult[] | void>;

export interface BatchAttemptOptions {
  readonly deliverBatch: DeliverBatch;
  readonly integrationType: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Fires when the process cannot wait any longer. */
  readonly stopping: AbortSignal;
}

export async function attemptBatch(
  messages: readonly ClaimedMessage[],
  { deliverBatch, integrationType, clock, timeoutMs, stopping }: BatchAttemptOptions,
): Promise<readonly DeliveryResult[]> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, stopping]);
  const same = (result: DeliveryResult): readonly DeliveryResult[] => messages.map(() => result);
  const sending = (async () => {
    const idempotencyKeys = messages.map(idempotencyKeyOf);
    const results = await deliverBatch(messages, { integrationType, idempotencyKeys, signal });
    if (results === undefined) return same({ kind: 'sent' });
    if (results.length === messages.length && results.every(isResult)) return results;
    const error = `deliverBatch gave ${results.length} results for ${messages.length} messages`;
    return same({ kind: 'retry', error: `${error}, or some that are none` });
  })();
  // Whoever does not heed the signal is not waited for: the lease would end before it does.
  const late = clock.sleep(timeoutMs, signal).then(() => {
    const error = `no answer within ${timeoutMs} ms`;
    over.abort(new Error(error));
    return same({ kind: 'retry', error });
  });
  try {
    return await Promise.race([sending, late]);
  } catch (error) {
    if (stopping.aborted) return same({ kind: 'retry', error: 'stopped', attempted: false });
    return same(resultOf(error));
  } finally {
    over.abort();
  }
}

/** Whoever writes without types may give anything. */
function isResult(result: DeliveryResult | undefined): boolean {
  return result?.kind === 'sent' || result?.kind === 'retry' || result?.kind === 'dead';
}

/**
 * Makes a batch of single sends: the messages of a key one after the other, keys side by side.
 *
 * @example
 * import { postgresOutboxLedger } from 'millrace/adapters/postgres';
 * import { createOutboxStreamRelay, deliverEach } from 'millrace/outbox';
 *
 * await using relay = createOutboxStreamRelay({
 *   ledger: await postgresOutboxLedger('postgres://localhost/shop'),
 *   integrationTypes: ['kafka:payments'],
 *   deliverBatch: deliverEach(async ({ payload }, { idempotencyKey }) => {
 *     console.log(idempotencyKey, payload);
 *   }),
 * });
 * await relay.start();
 */
export function deliverEach(
  deliver: Deliver,
  options: { readonly concurrency?: number } = {},
): DeliverBatch {
  const { concurrency = 16 } = options;
  return async (messages, { signal }) => {
    const results = new Map<ClaimedMessage, DeliveryResult>();
    const queues = new Map<string, ClaimedMessage[]>();
    for (const message of messages) {
      const name =
        message.orderingKey === undefined ? `id ${message.id}` : `key ${message.orderingKey}`;
      const queue = queues.get(name) ?? [];
      queues.set(name, queue);
      queue.push(message);
    }
    const left = queues.values();
    const work = async (): Promise<void> => {
      for (const queue of left) {
        let isStuck = false;
        for (const message of queue) {
          const result: DeliveryResult =
            isStuck || signal.aborted
              ? behind
              : ((await deliverOnce(message, deliver, signal).catch(resultOf)) ?? { kind: 'sent' });
          results.set(message, result);
          isStuck ||= result.kind === 'retry';
        }
      }
    };
    await Promise.all(Array.from({ length: concurrency }, work));
    return messages.map((message) => results.get(message) ?? behind);
  };
}

const behind: DeliveryResult = { kind: 'retry', error: 'behind another one', attempted: false };
