// Dead letters over HTTP: list, replay, discard and annotate events whose handler failed for good.

import type { Static, TObject } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { DeadLetter, DeadLetterFilter } from '../../../subscriptions/dead-letter.ts';
import type { DeadLetterStore } from '../../../subscriptions/subscription-storage.ts';
import { filterText } from '../../../platform/audit-log.ts';
import { cursorInvalid, isWithin, tenantWithin, returns, routesOf } from '../api-context.ts';
import { createSecretHider } from '../../../platform/modules/hide-secrets.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import { errorText, payloadValue } from '../../http/masked-fields.ts';
import {
  actorName,
  audited,
  bulkFilter,
  closed,
  failureCauseSchema,
  idOf,
  idPageQuery,
  idsField,
  pageBy,
  pageOf,
  text,
  time,
  timeOf,
  uuid,
  type AdminContext,
} from './admin-context.ts';

const { get, post } = routesOf('admin: dead letters', { get: 'read', post: 'operate' });

const nullable = Type.Union([Type.String(), Type.Null()]);
const letter = Type.Object(
  {
    id: Type.String(),
    eventId: Type.String(),
    eventType: Type.String(),
    aggregateId: Type.String(),
    payload: payloadValue(),
    error: errorText('The error of the last attempt.'),
    cause: Type.Union([failureCauseSchema, Type.Null()]),
    attempts: Type.Integer(),
    createdAt: Type.String(),
    status: Type.Enum(['pending', 'replayed', 'discarded']),
    replayedAt: nullable,
    replayedBy: nullable,
    notes: Type.String(),
    handler: Type.String({ description: 'The subscription whose handler failed.' }),
    tenant: Type.String(),
    correlationId: Type.String(),
    stream: Type.String(),
    revision: Type.Integer(),
    position: Type.String(),
    parked: Type.Boolean({
      description: 'The aggregate is parked: later events are queued after this one.',
    }),
    history: Type.Array(closed({ at: Type.String(), error: errorText() })),
    replayRequestedAt: nullable,
    discardedAt: nullable,
    discardedBy: nullable,
    discardReason: nullable,
  },
  { title: 'DeadLetter' },
);

const filterFields = {
  subscription: Type.Optional(text(400)),
  type: Type.Optional(text(400, 'The event type.')),
  tenant: Type.Optional(text(100)),
  stream: Type.Optional(text(400)),
  since: Type.Optional(time),
};
const chosenFields = {
  ids: idsField,
  ...filterFields,
  all: Type.Optional(Type.Boolean({ description: 'All pending dead letters.' })),
};
const idParams = closed({ id: uuid });
const reason = text(2_000, 'The reason, stored with the dead letter.');

type Chosen = Static<TObject<typeof chosenFields>>;

export function deadLetterRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;
  const { deadLetters } = platform.engines.subscriptions;
  const admin = platform.subscriptions;
  const hider = createSecretHider(platform.modules);
  const hide = (found: DeadLetter): DeadLetter => {
    const { stream, eventType: type } = found;
    return { ...found, payload: hider.payload({ stream, type }, found.payload) };
  };

  const letterOf = async (request: Pick<ApiRequest, 'memory' | 'principal'>, id: string) =>
    hide(await findLetter(deadLetters, request, id));

  const change = (
    action: 'discard' | 'note' | 'replay',
    request: ApiRequest<{ readonly id: string }>,
    work: (id: string) => Promise<void>,
  ): Promise<{ readonly body: DeadLetter }> => {
    const { id } = request.params;
    const what = { action: `dead-letter.${action}`, target: id };
    return audited(context, request, what, async () => {
      await letterOf(request, id);
      await work(id);
      return { body: await letterOf(request, id) };
    });
  };

  const changeAll = (
    action: 'discard' | 'replay',
    request: ApiRequest<unknown, unknown, Chosen>,
    work: (filter: DeadLetterFilter) => Promise<number>,
  ): Promise<number> => {
    const query = bulkFilter(request.body, 'ids or a filter');
    const what = { action: `dead-letter.${action}`, target: filterText(query) };
    return audited(context, request, what, () => work(filterOf(request, query)));
  };

  return [
    route({
      ...get,
      path: '/admin/dlq',
      summary: 'Dead letters, oldest first',
      query: closed({
        ...filterFields,
        status: Type.Optional(
          Type.Enum(['pending', 'replayed', 'discarded', 'all'], {
            description: 'Default: pending.',
          }),
        ),
        ...idPageQuery,
      }),
      responses: { 200: returns('A page', pageOf(letter)) },
      async handle(request) {
        const { status = 'pending', limit, cursor, ...query } = request.query;
        if (cursor !== undefined) await checkLetterCursor(deadLetters, request, cursor);
        const filter = {
          ...filterOf(request, query),
          status: status === 'all' ? undefined : status,
        };
        return pageBy(
          request.memory,
          { limit, cursor },
          (part) => deadLetters.list(filter, part),
          idOf,
        );
      },
    }),
    route({
      ...get,
      path: '/admin/dlq/{id}',
      summary: 'A dead letter with its payload and attempts',
      params: idParams,
      responses: { 200: returns('The dead letter', letter) },
      handle: async (request) => ({ body: await letterOf(request, request.params.id) }),
    }),
    route({
      ...post,
      path: '/admin/dlq/{id}/replay',
      summary: 'Replays a dead letter to the handler that failed',
      description:
        'The response confirms the request; the status becomes `replayed` when the handler has succeeded.',
      params: idParams,
      responses: {
        202: returns('Replay requested', letter),
        409: { description: 'The dead letter is not pending' },
      },
      handle: async (request) => ({
        status: 202,
        ...(await change('replay', request, (id) => admin.replay(id, { by: actorName(request) }))),
      }),
    }),
    route({
      ...post,
      path: '/admin/dlq/{id}/discard',
      summary: 'Discards a dead letter and continues with the events queued after it',
      params: idParams,
      body: closed({ reason }),
      responses: {
        200: returns('The dead letter', letter),
        409: { description: 'The dead letter is not pending' },
      },
      handle: (request) =>
        change('discard', request, (id) =>
          admin.discard(id, { by: actorName(request), reason: request.body.reason }),
        ),
    }),
    route({
      ...post,
      path: '/admin/dlq/{id}/note',
      summary: 'Sets the notes of a dead letter',
      params: idParams,
      body: closed({ notes: Type.String({ maxLength: 10_000, pattern: '^[^\\u0000]*$' }) }),
      responses: { 200: returns('The dead letter', letter) },
      handle: (request) => change('note', request, (id) => admin.note(id, request.body.notes)),
    }),
    route({
      ...post,
      path: '/admin/dlq/replay',
      summary: 'Replays dead letters by ids, by a filter, or all pending ones',
      body: closed(chosenFields),
      responses: {
        202: returns('The number of requested replays', closed({ requested: Type.Integer() })),
      },
      async handle(request) {
        const by = actorName(request);
        const requested = await changeAll('replay', request, (filter) =>
          admin.replayAll(filter, { by }),
        );
        return { status: 202, body: { requested } };
      },
    }),
    route({
      ...post,
      path: '/admin/dlq/discard',
      summary: 'Discards dead letters by ids, by a filter, or all pending ones',
      body: closed({ ...chosenFields, reason }),
      responses: {
        200: returns('The number of discarded dead letters', closed({ discarded: Type.Integer() })),
      },
      async handle(request) {
        const { reason: why, ...body } = request.body;
        const by = actorName(request);
        const discarded = await changeAll('discard', { ...request, body }, (filter) =>
          admin.discardAll(filter, { by, reason: why }),
        );
        return { body: { discarded } };
      },
    }),
  ];
}

/** Dead letters of other tenants count as unknown. */
export async function findLetter(
  deadLetters: Pick<DeadLetterStore, 'get'>,
  { memory, ...request }: Pick<ApiRequest, 'memory' | 'principal'>,
  id: string,
): Promise<DeadLetter> {
  const found = await memory.load(() => deadLetters.get(id));
  if (found !== undefined && isWithin(request, found.tenant)) return found;
  throw new MillraceError('DEAD_LETTER_UNKNOWN', `unknown dead letter '${id}'`, {
    details: { id },
  });
}

/** An unknown cursor would silently restart at the first page. */
export async function checkLetterCursor(
  deadLetters: Pick<DeadLetterStore, 'get'>,
  { memory, ...request }: Pick<ApiRequest, 'memory' | 'principal'>,
  cursor: string,
): Promise<void> {
  const known = await memory.load(() => deadLetters.get(cursor));
  if (known !== undefined && isWithin(request, known.tenant)) return;
  throw cursorInvalid();
}

function filterOf(
  request: Pick<ApiRequest, 'principal'>,
  { ids, subscription, type, tenant, stream, since }: Omit<Chosen, 'all'>,
): DeadLetterFilter {
  return {
    ids,
    handler: subscription,
    eventType: type,
    tenant: tenantWithin(request, tenant),
    stream,
    since: timeOf('since', since)?.toISOString(),
  };
}
