// Commands that the loaded modules open to clients: one route per command, with the schema of its definition.

import type { StandardJSONSchemaV1 } from '@standard-schema/spec';
import { Type } from '../../contracts/type.ts';
import {
  buildIdempotencyKey,
  parseIdempotencyKey,
  type IdempotencyKeyParts,
} from '../../contracts/idempotency-key.ts';
import { payloadHashHeader } from '../../aggregates/idempotency.ts';
import { jsonHash } from '../../contracts/filters-hash.ts';
import { idFromKey } from '../../foundation/ids.ts';
import { MillraceError } from '../../foundation/error.ts';
import { flowHeadersShown, flowOf } from '../../platform/modules/flow-of.ts';
import type { AnyAggregate, OpenCommand } from '../../platform/modules/platform-module.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { tenantOf, type ApiPlatform } from './api-context.ts';

type CommandDefinition = AnyAggregate['commands'][number];

const result = Type.Object({
  id: Type.String(),
  revision: Type.Integer(),
  position: Type.Optional(Type.String()),
  isDuplicate: Type.Boolean(),
  correlationId: Type.Optional(Type.String()),
  events: Type.Array(Type.Object({ type: Type.String(), eventId: Type.String() })),
});

export function commandRoutes(platform: ApiPlatform): readonly Route[] {
  return [...platform.modules.commands].map(([type, open]) => commandRoute(platform, type, open));
}

/** One route for all aggregates that accept the command: the body names one of several. */
function commandRoute(
  platform: ApiPlatform,
  type: string,
  { aggregates, scope }: OpenCommand,
): Route {
  const categories = aggregates.map(({ category }) => category);
  const contexts = [...new Set(aggregates.map(({ bc }) => bc))];
  const [name = ''] = type.split('.', 1);
  const body = Type.Object(
    {
      aggregate: Type.Optional(
        Type.Enum(categories, {
          description: 'The category of the aggregate. Required if there are several.',
        }),
      ),
      id: Type.Optional(
        Type.String({
          description: `The id of the ${name}. Default: derived from the idempotency key.`,
        }),
      ),
      payload: Type.Any(),
      expected: Type.Optional(
        Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('none'), Type.Literal('exists')]),
      ),
    },
    { additionalProperties: false },
  );
  return route({
    method: 'POST',
    path: `/api/v1/commands/${type}`,
    summary: `Executes ${type} in ${contexts.join(', ')}`,
    tag: `commands: ${contexts[0]}`,
    access: scope,
    headersShown: {
      'Idempotency-Key': 'Repeating a request with the same key returns the first result.',
      ...flowHeadersShown,
    },
    body,
    bodyShown: Type.Unsafe({
      ...body,
      properties: { ...body.properties, ...shownPayload(type, aggregates) },
    }),
    responses: {
      200: { description: 'The result and its events', schema: result },
      409: { description: 'Version conflict, or the key belongs to another command or payload' },
      422: { description: 'Rejected by a business rule, named in `details`' },
    },
    async handle(request) {
      const tenant = tenantOf(request);
      const { payload, expected, aggregate } = request.body;
      const target = aggregates.find(({ category }) => category === aggregate) ?? aggregates[0];
      const idempotencyKey = keyOf(request.headers['idempotency-key'], {
        tenant,
        service: target?.bc ?? '',
        // The version, if the client names it: equal keys of two versions are two commands.
        operation: `${type.replace('.', '-')}${aggregate === undefined ? '' : `-v${target?.version}`}`,
      });
      const id =
        request.body.id ?? (idempotencyKey === undefined ? undefined : idFromKey(idempotencyKey));
      if (id === undefined) {
        throw new MillraceError(
          'REQUEST_INVALID',
          'send an id, or an Idempotency-Key to derive one from',
          { details: { field: 'id' } },
        );
      }
      const flow = flowOf(request);
      const { events, revision, position, isDuplicate } = await platform.handle({
        tenant,
        id,
        command: { type, payload },
        // Aggregates whose command is internal are no candidates.
        aggregate: aggregates.length === 1 ? target?.category : aggregate,
        idempotencyKey,
        expected,
        ...flow,
        ...(idempotencyKey === undefined
          ? {}
          : { headers: { ...flow.headers, [payloadHashHeader]: jsonHash(payload) } }),
        user: request.principal && { id: request.principal.name },
        signal: request.signal,
      });
      const correlationId = events[0]?.correlationId;
      return {
        body: {
          id,
          revision,
          isDuplicate,
          position,
          correlationId,
          events: events.map((event) => ({ type: event.type, eventId: event.eventId })),
        },
      };
    },
  });
}

/** A complete key is used as it is, if it names the caller's tenant; any other string becomes its natural key. */
function keyOf(
  given: string | undefined,
  parts: Omit<IdempotencyKeyParts, 'naturalKey'>,
): string | undefined {
  if (given === undefined) return undefined;
  if (!given.includes('|')) return buildIdempotencyKey({ ...parts, naturalKey: given });
  if (parseIdempotencyKey(given).tenant === parts.tenant) return given;
  throw new MillraceError('NOT_ALLOWED', 'the idempotency key belongs to another tenant', {
    details: { field: 'idempotency-key' },
  });
}

/** The schemas for the reference; the definition validates the payload. */
function shownPayload(
  type: string,
  aggregates: readonly AnyAggregate[],
): { readonly payload?: unknown } {
  const shown = aggregates.map(({ category, commands }) => {
    const schema = commands.find((each) => each.type === type)?.schema;
    const id = aggregates.length === 1 ? type : `${category}:${type}`;
    return schema === undefined ? undefined : shownSchema(id, schema);
  });
  const [first] = shown;
  if (first === undefined || shown.includes(undefined)) return {};
  return { payload: shown.length === 1 ? first : { anyOf: shown } };
}

function shownSchema(id: string, schema: CommandDefinition['schema']): object | undefined {
  const standard = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>;
  try {
    const described = standard.jsonSchema?.input({ target: 'draft-2020-12' });
    if (described === undefined) return undefined;
    const { $schema: _dialect, ...payload } = described;
    // The $id keeps references relative to the root of this schema.
    return '$defs' in payload ? { $id: `urn:millrace:${id}`, ...payload } : payload;
  } catch {
    // Some schemas have no JSON Schema (dates, transformations): the reference then shows no payload.
    return undefined;
  }
}
