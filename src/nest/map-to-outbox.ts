// `@MapToOutbox`: a method that says which messages follow from an event. All of them are one projector.

import type { EventDefinition } from '../contracts/define-event.ts';
import type { IntegrationMessage } from '../outbox/outbox-projector.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { markMethod, type MethodDecoratorOf } from './method-marks.ts';

export interface MapToOutboxOptions {
  /** Chooses the destination, `webhook:partner-x`, where the message does not say it. */
  readonly integrationType?: string | undefined;
  /** What the receiver reads as its type. Default: the event's. */
  readonly eventType?: string | undefined;
}

export interface MapToOutboxMark extends MapToOutboxOptions {
  /** An event type, or `payment.*`, or `*`. */
  readonly pattern: string;
  readonly parse: ((payload: unknown) => unknown) | undefined;
}

/** What the decorator says may be left out. */
export type MappedMessage = Omit<IntegrationMessage, 'eventType' | 'integrationType'> &
  Partial<Pick<IntegrationMessage, 'eventType' | 'integrationType'>>;

/** None where it is nobody else's business. Not asynchronous: what follows from an event is in the event. */
export type MapMethod<Payload> = (
  event: RecordedEvent<Payload>,
) => readonly MappedMessage[] | MappedMessage | null | undefined;

export const mapToOutboxKey = Symbol.for('millrace:map-to-outbox');

/**
 * The method turns events of a type, of an aggregate (`payment.*`) or of any kind (`*`) into messages of the
 * outbox. Stream, event, tenant, user, correlation and idempotency key are added to them.
 *
 * @example
 * import { Injectable } from '@nestjs/common';
 * import { MapToOutbox, type MappedMessage } from 'millrace/nest';
 * import type { RecordedEvent } from 'millrace/store';
 *
 * @Injectable()
 * export class PartnerMessages {
 *   @MapToOutbox('payment.*', { integrationType: 'webhook:partner-x' })
 *   toPartner({ aggregate }: RecordedEvent): MappedMessage {
 *     return { payload: { paymentId: aggregate.id }, orderingKey: aggregate.id };
 *   }
 * }
 */
export function MapToOutbox(
  pattern: string,
  options?: MapToOutboxOptions,
): MethodDecoratorOf<MapMethod<never>>;
export function MapToOutbox<Type extends string, Input, Output>(
  definition: EventDefinition<Type, Input, Output>,
  options?: MapToOutboxOptions,
): MethodDecoratorOf<MapMethod<Output>>;
export function MapToOutbox(
  event: string | Pick<EventDefinition<string, unknown, unknown>, 'parse' | 'type'>,
  options: MapToOutboxOptions = {},
): MethodDecoratorOf<MapMethod<never>> {
  const mark: MapToOutboxMark =
    typeof event === 'string'
      ? { ...options, pattern: event, parse: undefined }
      : { ...options, pattern: event.type, parse: (payload) => event.parse(payload) };
  return (_target, _name, descriptor) => markMethod(mapToOutboxKey, mark, descriptor);
}
