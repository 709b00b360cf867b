// Queries of the read models of the loaded modules, for one tenant per request.

import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { readModelLimits } from '../../projections/read-model.ts';
import { familyOf } from '../../projections/read-model-versions.ts';
import { parsePosition } from '../../store/position.ts';
import type { DocumentFamily } from '../../platform/platform-projections.ts';
import { createSecretHider } from '../../platform/modules/hide-secrets.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { checkPayloadSearch, payloadValue } from '../http/masked-fields.ts';
import { tenantOf, type ApiPlatform } from './api-context.ts';

const params = { bc: Type.String({ maxLength: 100 }), aggregate: Type.String({ maxLength: 100 }) };
const found = Type.Object({
  id: Type.String(),
  revision: Type.Integer({ description: 'The revision of the last event in the document.' }),
  document: payloadValue(),
});
const waitQuery = {
  waitFor: Type.Optional(
    Type.String({
      description:
        'A position: the response waits until the document contains all events up to it.',
    }),
  ),
  waitMs: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 30_000, description: 'Default: 5000.' }),
  ),
};

export function documentRoutes(platform: ApiPlatform): readonly Route[] {
  const hider = createSecretHider(platform.modules);
  const hide = <Found extends { readonly document: unknown }>(
    family: DocumentFamily,
    given: Found,
  ): Found => ({ ...given, document: hider.document(family, given.document) });

  /** Read-your-writes: waits until the active version of this read model has reached the position. */
  const wait = async (
    { bc, aggregate }: { readonly bc: string; readonly aggregate: string },
    {
      waitFor,
      waitMs = 5_000,
    }: { readonly waitFor?: string | undefined; readonly waitMs?: number | undefined },
    signal: AbortSignal,
  ): Promise<void> => {
    if (waitFor === undefined) return;
    const position = parsePosition(waitFor);
    const versions = await platform.engines.readModelVersions.list(familyOf({ bc, aggregate }));
    const active = versions.find((each) => each.active)?.version;
    const projections = platform.modules.projections.filter(
      ({ readModel }) =>
        readModel.bc === bc &&
        readModel.aggregate === aggregate &&
        readModel.version === (active ?? readModel.version),
    );
    await Promise.all(
      projections.map((each) => platform.waitFor(each, position, { timeoutMs: waitMs, signal })),
    );
  };

  return [
    route({
      method: 'GET',
      path: '/api/v1/documents/{bc}/{aggregate}/{id}',
      summary: 'A document by its id',
      tag: 'documents',
      access: 'read',
      params: Type.Object({ ...params, id: Type.String({ maxLength: 400 }) }),
      query: Type.Object(waitQuery),
      responses: { 200: { description: 'The document', schema: found } },
      async handle(request) {
        const { id, ...family } = request.params;
        const tenant = tenantOf(request);
        const documents = platform.documents(family);
        await wait(family, request.query, request.signal);
        const document = await request.memory.load(() => documents.get(tenant, id));
        if (document === undefined) throw unknownDocument(family, id);
        return { body: hide(family, document) };
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/documents/{bc}/{aggregate}',
      summary: 'Documents of a set, a range or a unique index',
      description: "Default: the set 'all'.",
      tag: 'documents',
      access: 'read',
      params: Type.Object(params),
      query: Type.Object({
        ...waitQuery,
        set: Type.Optional(Type.String()),
        index: Type.Optional(Type.String()),
        value: Type.Optional(Type.String({ description: 'The value in the index.' })),
        range: Type.Optional(Type.String()),
        from: Type.Optional(Type.Number({ description: 'Bound of the range, inclusive.' })),
        to: Type.Optional(Type.Number({ description: 'Bound of the range, inclusive.' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
        cursor: Type.Optional(Type.String()),
      }),
      responses: {
        200: {
          description: 'A page',
          schema: Type.Object({ items: Type.Array(found), cursor: Type.Optional(Type.String()) }),
        },
      },
      async handle(request) {
        const { params: family, query, signal } = request;
        const tenant = tenantOf(request);
        const documents = platform.documents(family);
        await wait(family, query, signal);
        const { set = 'all', index, value, range, from, to, cursor } = query;
        const isByValue = set !== 'all' || index !== undefined || range !== undefined;
        if (isByValue) checkPayloadSearch(request.principal, 'a query by value');
        const { limit = readModelLimits.pageSize } = query;
        if (index !== undefined) {
          if (value === undefined) throw missingValue();
          const one = await request.memory.load(() => documents.byIndex(tenant, index, value));
          return { body: { items: one === undefined ? [] : [hide(family, one)] } };
        }
        const bounds = {
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
        };
        const body = await request.memory.page({ limit, cursor }, (part) =>
          range === undefined
            ? documents.bySet(tenant, set, part)
            : documents.byRange(tenant, range, { ...part, ...bounds }),
        );
        return { body: { ...body, items: body.items.map((each) => hide(family, each)) } };
      },
    }),
  ];
}

function missingValue(): MillraceError {
  return new MillraceError('REQUEST_INVALID', 'an index query needs a value: send ?value=', {
    details: { field: 'value' },
  });
}

function unknownDocument(
  family: { readonly bc: string; readonly aggregate: string },
  id: string,
): MillraceError {
  const { bc, aggregate } = family;
  return new MillraceError('NOT_FOUND', `unknown document '${id}' in ${bc}.${aggregate}`, {
    details: { bc, aggregate, id },
  });
}
