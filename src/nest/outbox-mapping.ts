// From methods with `@MapToOutbox` to the one projector that asks them all.

import { identifierPattern } from '../contracts/identifier.ts';
import { isEventType } from '../contracts/event-type.ts';
import { MillraceError } from '../foundation/error.ts';
import type { IntegrationEventMapper, IntegrationMessage } from '../outbox/outbox-projector.ts';
import type { EventFilter } from '../store/event-filter.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { parsed } from './handler-subscriptions.ts';
import type { MapMethod, MappedMessage, MapToOutboxMark } from './map-to-outbox.ts';
import type { MarkedMethod } from './method-marks.ts';

const wildcard = new RegExp(`^(${identifierPattern}\\.){0,2}\\*$`);

export interface OutboxMapping {
  readonly filter: EventFilter;
  readonly mapper: IntegrationEventMapper;
}

export function outboxMapping(methods: readonly MarkedMethod<MapToOutboxMark>[]): OutboxMapping {
  const places = new Map<string, string>();
  for (const { mark, where } of methods) {
    const { pattern, integrationType } = mark;
    if (!isEventType(pattern) && !wildcard.test(pattern)) {
      throw new MillraceError(
        'NAME_INVALID',
        `${where}: '${pattern}' is neither an event type nor 'payment.*', 'payment.completed.*' or '*'`,
        { details: { where, value: pattern } },
      );
    }
    if (integrationType === undefined) continue;
    const place = `${pattern}\n${integrationType}`;
    const other = places.get(place);
    if (other !== undefined) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `${where} and ${other} both map ${pattern} to ${integrationType}, where an event can go once`,
        { details: { where, integrationType } },
      );
    }
    places.set(place, where);
  }
  const routes = methods.map((method) => ({ method, isMeant: matcherOf(method.mark.pattern) }));
  return {
    filter: filterOf(methods.map(({ mark }) => mark.pattern)),
    mapper: {
      map(event) {
        const meant = routes.filter(({ isMeant }) => isMeant(event.type));
        const messages = meant.flatMap(({ method }) => messagesOf(method, event));
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
  const given = parse === undefined ? event : { ...event, payload: parsed(parse, event.payload) };
  const mapped = call(given) as ReturnType<MapMethod<unknown>> | Promise<unknown>;
  if (mapped instanceof Promise) {
    // Nobody waits for it; its outcome must not become an unhandled rejection either.
    mapped.catch(() => undefined);
    throw new TypeError(`${where} is asynchronous: what follows from an event is in the event`);
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

/** The ledger would take the second one for a repetition of the first, and drop it. */
function checkDestinations(messages: readonly IntegrationMessage[], { type }: RecordedEvent): void {
  const seen = new Set<string>();
  for (const { integrationType } of messages) {
    if (seen.has(integrationType)) {
      throw new TypeError(`${type} was mapped to ${integrationType} twice, where it can go once`);
    }
    seen.add(integrationType);
  }
}

function matcherOf(pattern: string): (type: string) => boolean {
  if (!pattern.endsWith('*')) return (type) => type === pattern;
  const prefix = pattern.slice(0, -1);
  return (type) => type.startsWith(prefix);
}

/** Types and prefixes of a filter must both hold, so where there are both, all become prefixes. */
function filterOf(patterns: readonly string[]): EventFilter {
  if (patterns.includes('*')) return {};
  if (patterns.every((pattern) => !pattern.endsWith('*'))) return { types: [...new Set(patterns)] };
  return { typePrefixes: [...new Set(patterns.map((pattern) => pattern.replace(/\*$/, '')))] };
}
