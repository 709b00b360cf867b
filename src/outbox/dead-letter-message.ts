// A dead message as a new message to a dead-letter topic. The ledger sends it like any other, at least once.

import type { ClaimedMessage, EnqueueOutboxProps } from './outbox-message.ts';

/**
 * The message to enqueue in `onDead`; none for a dead letter that is dead itself.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { createOutboxDispatcher, deadLetterMessage } from 'millrace/outbox';
 *
 * const ledger = openMemory().outbox;
 * const dispatcher = createOutboxDispatcher({
 *   ledger,
 *   deliver: async () => ({ kind: 'dead', error: 'HTTP 400' }),
 *   onDead: async (message, error) => {
 *     await ledger.enqueueMany(deadLetterMessage(message, error, 'kafka:outbox.dead'));
 *   },
 * });
 */
export function deadLetterMessage(
  message: ClaimedMessage,
  error: string,
  integrationType: string,
): readonly EnqueueOutboxProps[] {
  if (message.integrationType === integrationType) return [];
  const { id, token, starts, sourceStreamId, sourceEventId, eventType, payload } = message;
  const { tenantId, userId, correlationId } = message;
  // Includes the token, because a replayed message may become dead again.
  const key = `${id}:${token}`;
  return [
    {
      sourceStreamId,
      sourceEventId: key,
      integrationType,
      eventType: 'outbox.dead-lettered.v1',
      payload: {
        outboxId: id,
        integrationType: message.integrationType,
        sourceEventId,
        eventType,
        starts,
        error,
        payload,
      },
      headers: { ...message.headers, idempotencyKey: key },
      tenantId,
      userId,
      correlationId,
    },
  ];
}
