// A topic that is told of dead letters (OUTBOX_DEADLETTER_TOPIC). It is a signal: the ledger's DEAD rows are
// the truth, and a process that dies between the two tells nobody.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { MillraceError } from '../../foundation/error.ts';
import { kafkaDestination, type KafkaOptions } from './kafka-destination.ts';

export interface DeadLetterTopicOptions extends Omit<KafkaOptions, 'topic' | 'format'> {
  readonly topic: string;
}

/** What the dispatcher takes as `onDead`. */
export type DeadLetterTopic = AsyncDisposable &
  ((message: DeliveryMessage, error: string) => Promise<void>);

/**
 * Publishes each dead message, with what it died of, under the key that it would have had.
 *
 * @example
 * import { createOutboxDispatcher, memoryOutboxLedger } from 'millrace/outbox';
 * import { deadLetterTopic } from 'millrace/adapters/kafka';
 *
 * await using onDead = await deadLetterTopic('localhost:9092', { topic: 'outbox.dead' });
 * await using dispatcher = createOutboxDispatcher({
 *   ledger: memoryOutboxLedger(),
 *   deliver: async () => ({ kind: 'dead', error: 'no such account' }),
 *   onDead,
 * });
 * await dispatcher.start();
 */
export async function deadLetterTopic(
  brokers: string | readonly string[],
  { topic, ...options }: DeadLetterTopicOptions,
): Promise<DeadLetterTopic> {
  const kafka = await kafkaDestination(brokers, { ...options, topic: () => topic });
  const tell = async (message: DeliveryMessage, error: string): Promise<void> => {
    const [outcome] = await kafka.sendBatch([letterOf(message, error)]);
    if (outcome?.kind === 'sent') return;
    const { error: reason = 'no answer' } = outcome ?? {};
    throw new MillraceError('STORE_UNAVAILABLE', `the topic of dead letters: ${reason}`, {
      details: { topic, outboxId: message.id },
    });
  };
  return Object.assign(tell, { [Symbol.asyncDispose]: () => kafka[Symbol.asyncDispose]() });
}

function letterOf(message: DeliveryMessage, error: string): DeliveryMessage {
  const { id, integrationType, eventType, sourceStreamId, sourceEventId, attempts } = message;
  const { payload } = message;
  return {
    ...message,
    headers: { ...message.headers, integrationType, error },
    payload: {
      outboxId: id,
      integrationType,
      eventType,
      sourceStreamId,
      sourceEventId,
      attempts,
      error,
      payload,
    },
  };
}
