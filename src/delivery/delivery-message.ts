// The message that is delivered: the fields of an outbox row that a destination may need, without its state.

export interface DeliveryMessage {
  /** The id of the outbox row. */
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
  /** When the event occurred, ISO 8601. */
  readonly occurredAt?: string | undefined;
  /** When the message was enqueued. */
  readonly createdAt?: Date | undefined;
  /** Failed attempts so far. */
  readonly attempts?: number | undefined;
  /** Started attempts, including this one: more than failed ones if a process died. */
  readonly starts?: number | undefined;
}

/** The most exact known time of the event; the same for every attempt. */
export function occurredAtOf({ occurredAt, createdAt }: DeliveryMessage): string | undefined {
  return occurredAt ?? createdAt?.toISOString();
}
