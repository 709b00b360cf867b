// What is delivered: the fields of an outbox row that a destination may need, and nothing of its state.

export interface DeliveryMessage {
  /** The outbox row's id. */
  readonly id: string;
  /** Chooses the destination: `webhook:partner-x`, `kafka:payments`. */
  readonly integrationType: string;
  readonly eventType: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  readonly sourceStreamId: string;
  readonly sourceEventId: string;
  readonly tenantId?: string | undefined;
  readonly userId?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly orderingKey?: string | undefined;
  /** When the event happened, ISO 8601. */
  readonly occurredAt?: string | undefined;
  /** When it was put into the ledger. */
  readonly createdAt?: Date | undefined;
  /** How many attempts have failed so far. */
  readonly attempts?: number | undefined;
  /** How many attempts were begun, this one included: more than failed where a process died. */
  readonly starts?: number | undefined;
}

/** The best that is known of when it happened; the same for every attempt. */
export function occurredAtOf({ occurredAt, createdAt }: DeliveryMessage): string | undefined {
  return occurredAt ?? createdAt?.toISOString();
}

/**
 * What the receiver dedupes by: the header `idempotencyKey` where the mapper set one, else the id of
 * the event. The same for every attempt, and after the outbox was filled again from the store.
 *
 * @example
 * import { idempotencyKeyOf } from 'millrace/delivery';
 *
 * console.log(idempotencyKeyOf({ sourceEventId: '0199-a', headers: { idempotencyKey: 'invoice-7' } })); // invoice-7
 */
export function idempotencyKeyOf({
  sourceEventId,
  headers,
}: Pick<DeliveryMessage, 'sourceEventId' | 'headers'>): string {
  const key = headers?.['idempotencyKey'];
  return typeof key === 'string' && key !== '' ? key : sourceEventId;
}
