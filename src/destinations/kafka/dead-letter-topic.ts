// Publishes dead letters to a Kafka topic (OUTBOX_DEADLETTER_TOPIC). The topic is only a notification: the DEAD rows of
// the ledger are authoritative, and a process that dies before publishing sends none.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import { MillraceError } from '../../foundation/error.ts';
import { kafkaDestination, type KafkaOptions } from './destination.ts';

export interface DeadLetterTopicOptions extends Omit<KafkaOptions, 'topic' | 'format'> {
  readonly topic: string;
}

/** The `onDead` callback of the dispatcher. */
export type DeadLetterTopic = AsyncDisposable &
  ((message: DeliveryMessage, error: string) => Promise<void>);

/**
 * Publishes each dead message and its error, with the record key of the original message.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createOutboxDispatcher } from 'millrace/outbox';
 * import { deadLetterTopic } from 'millrace/destinations/kafka';
 *
 * await using onDead = await deadLetterTopic('localhost:9092', { topic: 'outbox.dead' });
 * await using dispatcher = createOutboxDispatcher({
 *   ledger: openMemory().outbox,
 *   deliver: async () => ({ kind: 'dead', error: 'no such account' }),
 *   onDead,
 * });
 * await dispatcher.start();
 */
export async function deadLetterTopic(
  brokers: string | readonly string[],
  { topic, ...options }: DeadLetterTopicOptions,
): Promise<DeadLetterTopic> {
  const kafka = await kafkaDestination(brokers, { ...options, topic });
  const publish = async (message: DeliveryMessage, error: string): Promise<void> => {
    const [outcome] = await kafka.sendBatch([letterOf(message, error)]);
    if (outcome?.kind === 'sent') return;
    const { error: reason = 'no response' } = outcome ?? {};
    throw new MillraceError('STORE_UNAVAILABLE', `could not publish the dead letter: ${reason}`, {
      details: { topic, outboxId: message.id },
    });
  };
  return Object.assign(publish, { [Symbol.asyncDispose]: () => kafka[Symbol.asyncDispose]() });
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
