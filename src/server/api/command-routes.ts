// Commands of the loaded modules: one route for each, with the schema that its module gave it.

import type { StandardJSONSchemaV1 } from '@standard-schema/spec';
import { Type } from '../../contracts/type.ts';
import { buildIdempotencyKey, parseIdempotencyKey } from '../../contracts/idempotency-key.ts';
import { idFromKey } from '../../foundation/ids.ts';
import { MillraceError } from '../../foundation/error.ts';
import { flowHeadersShown, flowOf } from '../../platform/modules/flow-of.ts';
import type { AnyAggregate } from '../../platform/modules/platform-module.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { tenantOf, type ApiPlatform } from './api-context.ts';

type CommandDefinition = AnyAggregate['commands'][number];

const result = Type.Object({
  id: Type.String(),
  revision: Type.Integer(),
  position: Type.Optional(Type.String()),
  repeated: Type.Boolean(),
  correlationId: Type.Optional(Type.String()),
  events: Type.Array(Type.Object({ type: Type.String(), eventId: Type.String() })),
});

export function commandRoutes(platform: ApiPlatform): readonly Route[] {
  return [...platform.modules.aggregates.values()].flatMap((aggregate) =>
    aggregate.commands.map((command) => commandRoute(platform, aggregate, command)),
  );
}

function commandRoute(
  platform: ApiPlatform,
  { bc, name }: AnyAggregate,
  { type, schema }: CommandDefinition,
): Route {
  const body = Type.Object(
    {
      id: Type.Optional(
        Type.String({ description: `Of the ${name}. Default: made from the idempotency key.` }),
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
    summary: `${type} of ${bc}`,
    tag: `commands: ${bc}`,
    access: 'append',
    headersShown: {
      'Idempotency-Key': 'A repeat under the same one gets the first result.',
      ...flowHeadersShown,
    },
    body,
    bodyShown: Type.Unsafe({
      ...body,
      properties: { ...body.properties, ...shownPayload(type, schema) },
    }),
    answers: {
      200: { description: 'What happened', schema: result },
      409: { description: 'Somebody else was faster, or the key belongs to another command' },
      422: { description: 'A rule forbids it; details tell which' },
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
          'send an id, or an Idempotency-Key to make one from',
          {
            details: { field: 'id' },
          },
        );
      }
      const { events, revision, position, repeated } = await platform.handle({
        tenant,
        id,
        command: { type, payload },
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        ...(expected === undefined ? {} : { expected }),
        ...flowOf(request),
        signal: request.signal,
      });
      const correlationId = events[0]?.correlationId;
      return {
        body: {
          id,
          revision,
          repeated,
          ...(position === undefined ? {} : { position }),
          ...(correlationId === undefined ? {} : { correlationId }),
          events: events.map((event) => ({ type: event.type, eventId: event.eventId })),
        },
      };
    },
  });
}

/** A whole key of the grammar is taken as it is, if it is the caller's tenant's; else one is made of it. */
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
  throw new MillraceError('NOT_ALLOWED', 'the idempotency key is of another tenant', {
    details: { field: 'idempotency-key' },
  });
}

/** For the reference: the definition itself checks the payload. */
function shownPayload(
  type: string,
  schema: CommandDefinition['schema'],
): { readonly payload?: unknown } {
  const standard = schema['~standard'] as Partial<StandardJSONSchemaV1.Props>;
  try {
    const described = standard.jsonSchema?.input({ target: 'draft-2020-12' });
    if (described === undefined) return {};
    const { $schema: _dialect, ...payload } = described;
    // Its references count from its own root, which this says is here.
    return { payload: '$defs' in payload ? { $id: `urn:millrace:${type}`, ...payload } : payload };
  } catch {
    // Not every schema can be described (dates, transformations): then the reference says nothing.
    return {};
  }
}
