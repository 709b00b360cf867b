// The domain event envelope: one definition yields the type, the validator and the published JSON Schema
// (schemas/domain-event-envelope.json, checked by a test).

import type { Static, TString } from 'typebox';
import { Type } from './type.ts';
import { Format } from 'typebox/format';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { createIds, type IdSource } from '../foundation/ids.ts';
import { eventTypePattern } from './event-type.ts';
import { identifierPattern, idPattern, nameLimits } from './identifier.ts';
import { encodePayload, type PayloadOptions } from './json-payload.ts';
import { compileSchema, problemsText } from './schema.ts';
import { tenantPattern } from './tenant.ts';

/** Limits of the columns and headers that carry these fields. */
const limits = { eventIdCharsMax: 100, correlationIdCharsMax: 120, textCharsMax: 255 } as const;

const text = (charsMax: number): TString =>
  Type.String({
    description: `1 to ${charsMax} characters, none of them a control character`,
    pattern: `^[^\\u0000-\\u001f\\u007f]{1,${charsMax}}$`,
  });
const shaped = (description: string, pattern: string, maxLength: number): TString =>
  Type.String({ description, pattern: `^${pattern}$`, maxLength });

const identifier = shaped('kebab-case', identifierPattern, 100);

/** A separate format: TypeBox's `date-time` is ten times slower, and its registry is global. */
const dateTimeFormat = 'millrace:date-time';
Format.Set(dateTimeFormat, isRealDay);

const envelopeDefinition = Type.Object(
  {
    type: shaped(
      '<agg>.<action>.v<version> in kebab-case, such as payment.completed.v1',
      eventTypePattern,
      nameLimits.eventTypeCharsMax,
    ),
    eventId: text(limits.eventIdCharsMax),
    occurredAt: Type.String({
      description: 'an ISO 8601 time with its offset, such as 2025-09-30T10:00:00.000Z',
      format: dateTimeFormat,
      pattern:
        '^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$',
    }),
    correlationId: text(limits.correlationIdCharsMax),
    causationId: Type.Optional(text(limits.correlationIdCharsMax)),
    idempotencyKey: Type.Optional(text(limits.textCharsMax)),
    tenant: shaped(
      'a tenant key such as core or demo-za',
      tenantPattern,
      nameLimits.tenantCharsMax,
    ),
    aggregate: Type.Object({
      bc: identifier,
      type: identifier,
      id: shaped('letters, digits, ".", "_" and "-"', idPattern, nameLimits.streamCharsMax),
      version: Type.Optional(Type.Number({ description: 'a number' })),
    }),
    user: Type.Optional(
      Type.Object(
        {
          id: Type.Optional(Type.String()),
          email: Type.Optional(Type.String()),
          name: Type.Optional(Type.String()),
          tenant: Type.Optional(Type.String()),
          tenantId: Type.Optional(Type.String()),
        },
        { additionalProperties: true },
      ),
    ),
    headers: Type.Optional(
      Type.Unsafe<Readonly<Record<string, unknown>>>({
        type: 'object',
        additionalProperties: true,
      }),
    ),
    payload: Type.Unsafe<unknown>({
      type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
      description: 'a JSON value',
    }),
  },
  { additionalProperties: false },
);

type EnvelopeFields = Static<typeof envelopeDefinition>;

/** The shape of stored events and of messages between services. */
export type DomainEventEnvelope<Payload = unknown> = Readonly<Omit<EnvelopeFields, 'payload'>> & {
  readonly payload: Payload;
};

const schema = compileSchema(envelopeDefinition);

/** The published JSON Schema (2020-12) of the envelope. */
export const envelopeJsonSchema: Readonly<Record<string, unknown>> = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'urn:millrace:schemas:domain-event-envelope:v1',
  title: 'Domain event envelope',
  ...(JSON.parse(
    JSON.stringify(envelopeDefinition).replaceAll(dateTimeFormat, 'date-time'),
  ) as Record<string, unknown>),
};

/**
 * Whether a value is a valid envelope.
 *
 * @example
 * import { isEnvelope } from 'millrace/contracts';
 *
 * console.log(isEnvelope({ type: 'payment.completed.v1' })); // false
 */
export const isEnvelope: (value: unknown) => value is DomainEventEnvelope = schema.check;

/**
 * Returns the envelope, or throws `ENVELOPE_INVALID` with all problems and their paths.
 *
 * @example
 * import { validateEnvelope } from 'millrace/contracts';
 * import { hasCode } from 'millrace/foundation';
 *
 * try {
 *   validateEnvelope({ type: 'PaymentCompleted', tenant: 'core' });
 * } catch (error) {
 *   if (hasCode(error, 'ENVELOPE_INVALID')) console.log(error.details['problems']);
 * }
 */
export function validateEnvelope(value: unknown): DomainEventEnvelope {
  if (isEnvelope(value)) return value;
  const problems = schema.problems(value);
  throw new MillraceError('ENVELOPE_INVALID', `not an event envelope: ${problemsText(problems)}`, {
    details: { problems },
  });
}

/** An event as `decide` returns it, before it gets an envelope. */
export interface NewEvent<Type extends string = string, Payload = unknown> {
  readonly type: Type;
  readonly payload: Payload;
  /** In addition to the headers of the command; with `dataSubject`, only this event is about that person. */
  readonly headers?: DomainEventEnvelope['headers'];
}

export interface EnvelopeContext {
  readonly tenant: string;
  readonly aggregate: DomainEventEnvelope['aggregate'];
  /** Default: the id of this event, which starts a new flow. */
  readonly correlationId?: string;
  readonly causationId?: string;
  readonly idempotencyKey?: string;
  readonly user?: NonNullable<DomainEventEnvelope['user']>;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly eventId?: string;
}

export interface EnvelopeOptions extends PayloadOptions {
  readonly ids?: IdSource | undefined;
  readonly clock?: Clock | undefined;
}

const defaultIds = createIds();

/**
 * Wraps a new event in a validated envelope for the store or for messages.
 *
 * @example
 * import { createEnvelope } from 'millrace/contracts';
 *
 * const envelope = createEnvelope(
 *   { type: 'payment.completed.v1', payload: { amount: 12.5 } },
 *   { tenant: 'core', aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' } },
 * );
 */
export function createEnvelope<Type extends string, Payload>(
  event: NewEvent<Type, Payload>,
  context: EnvelopeContext,
  options: EnvelopeOptions = {},
): DomainEventEnvelope<Payload> & { readonly type: Type } {
  const { ids = defaultIds, clock = systemClock, ...payloadOptions } = options;
  const eventId = context.eventId ?? ids.next();
  const envelope = {
    type: event.type,
    eventId,
    occurredAt: new Date(clock.now()).toISOString(),
    correlationId: eventId,
    ...context,
    payload: event.payload,
  };
  validateEnvelope(envelope);
  encodePayload(event.payload, payloadOptions);
  return envelope;
}

/** The pattern checks the digits; this checks February and the months of 30 days. */
function isRealDay(time: string): boolean {
  const day = Number(time.slice(8, 10));
  if (day <= 28) return true;
  const month = Number(time.slice(5, 7));
  if (month !== 2) return day <= 30 || ![4, 6, 9, 11].includes(month);
  const year = Number(time.slice(0, 4));
  return day === 29 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}
