// `@MapToOutbox`: methods that map events to outgoing messages, and the one projector that calls them.

import type { EventDefinition } from '../contracts/define-event.ts';
import { isEventType } from '../contracts/event-type.ts';
import { eventTokenPattern } from '../contracts/identifier.ts';
import { MillraceError } from '../foundation/error.ts';
import type { IntegrationEventMapper, IntegrationMessage } from '../outbox/outbox-projector.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import {
  type EventMark,
  type MarkedMethod,
  type MethodDecoratorOf,
  eventDecorator,
  streamPrefixOf,
  uniquePrefixes,
} from './method-marks.ts';
import { parseOrTerminate } from './on-event.ts';

export interface MapToOutboxOptions {
  /** The destination, such as `webhook:partner-x`, unless the message names one. */
  readonly integrationType?: string | undefined;
  /** The event type that the receiver gets. Default: the type of the event. */
  readonly eventType?: string | undefined;
  /**
   * Maps the events of this category, such as `crm.account.v1`. Default: the categories of the event type or pattern in
   * the bounded context of the module (`bc`).
   */
  readonly category?: string | undefined;
}

/** The event type of a mark may be a pattern: `payment.*`, or `*`. */
export type MapToOutboxMark = MapToOutboxOptions & EventMark;

/** A message without the fields that the decorator sets. */
export type MappedMessage = Omit<IntegrationMessage, 'eventType' | 'integrationType'> &
  Partial<Pick<IntegrationMessage, 'eventType' | 'integrationType'>>;

/** Returns no message for an internal event. Synchronous, because a mapping depends on the event only. */
export type MapMethod<Payload> = (
  event: RecordedEvent<Payload>,
) => readonly MappedMessage[] | MappedMessage | null | undefined;

export const mapToOutboxKey = Symbol.for('millrace:map-to-outbox');

/**
 * The method maps events of a type, of an aggregate (`payment.*`) or of all types (`*`) to messages of the outbox. The
 * projector adds stream, event, idempotency key and, unless the method sets them, tenant, user and correlation id.
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
  event: Parameters<typeof eventDecorator>[1],
  options?: MapToOutboxOptions,
): MethodDecoratorOf<MapMethod<never>> {
  return eventDecorator(mapToOutboxKey, event, options);
}

const wildcard = new RegExp(`^(${eventTokenPattern}\\.){0,2}\\*$`);

export interface OutboxMapping {
  readonly filter: EventFilter;
  readonly mapper: IntegrationEventMapper;
}

export function outboxMapping(
  methods: readonly MarkedMethod<MapToOutboxMark>[],
  bc: string | undefined,
): OutboxMapping {
  const mappedBy = new Map<string, string>();
  for (const { mark, where } of methods) {
    const { type: pattern, integrationType, category = '' } = mark;
    if (!isEventType(pattern) && !wildcard.test(pattern)) {
      throw new MillraceError(
        'NAME_INVALID',
        `${where}: '${pattern}' is neither an event type nor 'payment.*', 'payment.completed.*' or '*'`,
        { details: { where, value: pattern } },
      );
    }
    if (integrationType === undefined) continue;
    const mapping = `${category}\n${pattern}\n${integrationType}`;
    const other = mappedBy.get(mapping);
    if (other !== undefined) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `${where} and ${other} both map ${pattern} to ${integrationType}: each destination receives an event only once, so remove one of them`,
        { details: { where, integrationType } },
      );
    }
    mappedBy.set(mapping, where);
  }
  const routes = methods.map((method) => ({
    method,
    matches: matcherOf(method.mark.type),
    streamPrefix: streamPrefixOf(method, bc),
  }));
  return {
    filter: {
      ...filterOf(methods.map(({ mark }) => mark.type)),
      streamPrefixes: uniquePrefixes(routes),
    },
    mapper: {
      map(event) {
        const matching = routes.filter(
          ({ matches, streamPrefix }) =>
            matches(event.type) && event.stream.startsWith(streamPrefix),
        );
        const messages = matching.flatMap(({ method }) => messagesOf(method, event));
        checkDestinations(messages, event);
        return messages;
      },
    },
  };
}

function messagesOf(
  { mark, call, where }: MarkedMethod<MapToOutboxMark>,
  event: RecordedEvent,
): readonly IntegrationMessage[] {
  const { parse } = mark;
  const given =
    parse === undefined ? event : { ...event, payload: parseOrTerminate(parse, event.payload) };
  const mapped = call(given) as ReturnType<MapMethod<unknown>> | Promise<unknown>;
  if (mapped instanceof Promise) {
    // The promise is not awaited, so a rejection must not become an unhandled one.
    mapped.catch(() => undefined);
    throw new TypeError(`${where} is asynchronous: a mapping depends on the event only`);
  }
  return listOf(mapped).map((message) => ({
    ...message,
    integrationType: message.integrationType ?? mark.integrationType ?? '',
    eventType: message.eventType ?? mark.eventType ?? event.type,
  }));
}

function listOf(mapped: ReturnType<MapMethod<unknown>>): readonly MappedMessage[] {
  if (mapped === undefined || mapped === null) return [];
  return isList(mapped) ? mapped : [mapped];
}

function isList(
  mapped: readonly MappedMessage[] | MappedMessage,
): mapped is readonly MappedMessage[] {
  return Array.isArray(mapped);
}

/** The ledger would drop the second message as a duplicate of the first. */
function checkDestinations(messages: readonly IntegrationMessage[], { type }: RecordedEvent): void {
  const seen = new Set<string>();
  for (const { integrationType } of messages) {
    if (seen.has(integrationType)) {
      throw new TypeError(
        `${type} was mapped to ${integrationType} twice: each destination receives an event only once`,
      );
    }
    seen.add(integrationType);
  }
}

function matcherOf(pattern: string): (type: string) => boolean {
  if (!pattern.endsWith('*')) return (type) => type === pattern;
  const prefix = pattern.slice(0, -1);
  return (type) => type.startsWith(prefix);
}

/** A filter matches types AND prefixes, so with both kinds, all become prefixes. */
function filterOf(patterns: readonly string[]): EventFilter {
  if (patterns.includes('*')) return {};
  if (patterns.every((pattern) => !pattern.endsWith('*'))) return { types: [...new Set(patterns)] };
  return { typePrefixes: [...new Set(patterns.map((pattern) => pattern.replace(/\*$/, '')))] };
}
