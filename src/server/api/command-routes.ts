// Commands that the loaded modules open to clients: one route per command, with the schema of its definition.

import type { StandardJSONSchemaV1 } from '@standard-schema/spec';
import { Type } from '../../contracts/type.ts';
import { buildIdempotencyKey, parseIdempotencyKey } from '../../contracts/idempotency-key.ts';
import { idFromKey } from '../../foundation/ids.ts';
import { MillraceError } from '../../foundation/error.ts';
import { flowHeadersShown, flowOf } from '../../platform/modules/flow-of.ts';
import type { AnyAggregate } from '../../platform/modules/platform-module.ts';
import type { Access } from '../../platform/modules/principal.ts';
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
  return [...platform.modules.aggregates.values()].flatMap((aggregate) =>
    aggregate.commands.flatMap((command) => {
      const access = platform.modules.commands.get(command.type);
      return access === undefined ? [] : [commandRoute(platform, aggregate, command, access)];
    }),
  );
}

function commandRoute(
  platform: ApiPlatform,
  { bc, name }: AnyAggregate,
  { type, schema }: CommandDefinition,
  access: Access,
): Route {
  const body = Type.Object(
    {
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
    summary: `Executes ${type} in ${bc}`,
    tag: `commands: ${bc}`,
    access,
    headersShown: {
      'Idempotency-Key': 'Repeating a request with the same key returns the first result.',
      ...flowHeadersShown,
    },
    body,
    bodyShown: Type.Unsafe({
      ...body,
      properties: { ...body.properties, ...shownPayload(type, schema) },
    }),
    responses: {
      200: { description: 'The result and its events', schema: result },
      409: { description: 'Version conflict, or the key belongs to another command' },
      422: { description: 'Rejected by a business rule, named in `details`' },
    },
    async handle(request) {
      const tenant = tenantOf(request);
      const { payload, expected } = request.body;
      const idempotencyKey = keyOf(request.headers['idempotency-key'], tenant, bc, type);
      const id =
        request.body.id ?? (idempotencyKey === undefined ? undefined : idFromKey(idempotencyKey));
      if (id === undefined) {
        throw new MillraceError(
          'REQUEST_INVALID',
          'send an id, or an Idempotency-Key to derive one from',
          { details: { field: 'id' } },
        );
      }
      const { events, revision, position, isDuplicate } = await platform.handle({
        tenant,
        id,
        command: { type, payload },
        idempotencyKey,
        expected,
        ...flowOf(request),
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
  tenant: string,
  service: string,
  operation: string,
): string | undefined {
  if (given === undefined) return undefined;
  if (!given.includes('|')) {
    return buildIdempotencyKey({
      tenant,
      service,
      operation: operation.replace('.', '-'),
      naturalKey: given,
    });
  }
  if (parseIdempotencyKey(given).tenant === tenant) return given;
  throw new MillraceError('NOT_ALLOWED', 'the idempotency key belongs to another tenant', {
    details: { field: 'idempotency-key' },
  });
}

/** The schema for the reference; the definition validates the payload. */
function shownPayload(
  type: string,
  schema: CommandDefinition['schema'],
): { readonly payload?: unknown } {
  const standard = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>;
  try {
    const described = standard.jsonSchema?.input({ target: 'draft-2020-12' });
    if (described === undefined) return {};
    const { $schema: _dialect, ...payload } = described;
    // The $id keeps references relative to the root of this schema.
    return { payload: '$defs' in payload ? { $id: `urn:millrace:${type}`, ...payload } : payload };
  } catch {
    // Some schemas have no JSON Schema (dates, transformations): the reference then shows no payload.
    return {};
  }
}
