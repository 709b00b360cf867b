// Dead letters over HTTP: what handlers could not take, and what becomes of it.

import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { DeadLetter, DeadLetterFilter } from '../../../subscriptions/dead-letter.ts';
import { filterText } from '../../../platform/audit-log.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import {
  askedBy,
  audited,
  checkChosen,
  closed,
  idOf,
  idPageQuery,
  idsField,
  isWithin,
  pageBy,
  pageOf,
  tenantWithin,
  text,
  time,
  timeOf,
  uuid,
  type AdminContext,
} from './admin-context.ts';

const tag = 'admin: dead letters';
const access = 'admin';

const nullable = Type.Union([Type.String(), Type.Null()]);
const letter = Type.Object(
  {
    id: Type.String(),
    eventId: Type.String(),
    eventType: Type.String(),
    aggregateId: Type.String(),
    payload: Type.Unknown(),
    error: Type.String({ description: 'Of the last attempt.' }),
    attempts: Type.Integer(),
    createdAt: Type.String(),
    status: Type.Enum(['pending', 'replayed', 'discarded']),
    replayedAt: nullable,
    replayedBy: nullable,
    notes: Type.String(),
    handler: Type.String({ description: 'The subscription that failed.' }),
    tenant: Type.String(),
    correlationId: Type.String(),
    stream: Type.String(),
    revision: Type.Integer(),
    position: Type.String(),
    parked: Type.Boolean({ description: 'Later events of the aggregate wait behind it.' }),
    history: Type.Array(closed({ at: Type.String(), error: Type.String() })),
    replayRequestedAt: nullable,
    discardedAt: nullable,
    discardedBy: nullable,
    discardReason: nullable,
  },
  { title: 'DeadLetter' },
);

const filterFields = {
  subscription: Type.Optional(text(400)),
  type: Type.Optional(text(400, 'Of the event.')),
  tenant: Type.Optional(text(100)),
  stream: Type.Optional(text(400)),
  since: Type.Optional(time),
};
const chosenFields = {
  ids: idsField,
  ...filterFields,
  all: Type.Optional(Type.Boolean({ description: 'All that are pending.' })),
};
const idParams = closed({ id: uuid });
const reason = text(2_000, 'Why; it is kept with the letter.');

interface LetterQuery {
  readonly ids?: readonly string[];
  readonly subscription?: string;
  readonly type?: string;
  readonly tenant?: string;
  readonly stream?: string;
  readonly since?: string;
}

export function deadLetterRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;
  const { deadLetters } = platform.engines.storage;
  const admin = platform.subscriptions;

  /** Another tenant's is as if it were not there. */
  const letterOf = async (request: Pick<ApiRequest, 'principal'>, id: string) => {
    const found = await deadLetters.get(id);
    if (found !== undefined && isWithin(request, found.tenant)) return found;
    throw new MillraceError('DEAD_LETTER_UNKNOWN', `there is no dead letter '${id}'`, {
      details: { id },
    });
  };

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
    request: ApiRequest<unknown, unknown, LetterQuery & { readonly all?: boolean }>,
    work: (filter: DeadLetterFilter) => Promise<number>,
  ): Promise<number> => {
    const { all: _all, ...query } = request.body;
    checkChosen(request.body, Object.keys(query).length > 0, 'ids or a filter');
    const what = { action: `dead-letter.${action}`, target: filterText(query) };
    return audited(context, request, what, () => work(filterOf(request, query)));
  };

  return [
    route({
      method: 'GET',
      path: '/admin/dlq',
      summary: 'Dead letters, oldest first',
      tag,
      access,
      query: closed({
        ...filterFields,
        status: Type.Optional(
          Type.Enum(['pending', 'replayed', 'discarded', 'all'], {
            description: 'Default: pending.',
          }),
        ),
        ...idPageQuery,
      }),
      answers: { 200: { description: 'A page', schema: pageOf(letter) } },
      async handle(request) {
        const { status = 'pending', limit, cursor, ...query } = request.query;
        if (cursor !== undefined) await checkCursor(request, cursor);
        const filter = { ...filterOf(request, query), ...(status === 'all' ? {} : { status }) };
        return pageBy({ limit, cursor }, (page) => deadLetters.list(filter, page), idOf);
      },
    }),
    route({
      method: 'GET',
      path: '/admin/dlq/{id}',
      summary: 'A dead letter with its payload and attempts',
      tag,
      access,
      params: idParams,
      answers: { 200: { description: 'The letter', schema: letter } },
      handle: async (request) => ({ body: await letterOf(request, request.params.id) }),
    }),
    route({
      method: 'POST',
      path: '/admin/dlq/{id}/replay',
      summary: 'Lets the failed handler try again, and no other',
      description: 'Answered when it is asked for: the status is `replayed` once it succeeded.',
      tag,
      access,
      params: idParams,
      answers: {
        202: { description: 'It will be tried', schema: letter },
        409: { description: 'It is not pending any more' },
      },
      handle: async (request) => ({
        status: 202,
        ...(await change('replay', request, (id) => admin.replay(id, { by: askedBy(request) }))),
      }),
    }),
    route({
      method: 'POST',
      path: '/admin/dlq/{id}/discard',
      summary: 'Gives a dead letter up; what waits behind it goes on',
      tag,
      access,
      params: idParams,
      body: closed({ reason }),
      answers: {
        200: { description: 'The letter', schema: letter },
        409: { description: 'It is not pending any more' },
      },
      handle: (request) =>
        change('discard', request, (id) =>
          admin.discard(id, { by: askedBy(request), reason: request.body.reason }),
        ),
    }),
    route({
      method: 'POST',
      path: '/admin/dlq/{id}/note',
      summary: 'Writes a note to a dead letter, in place of the one before',
      tag,
      access,
      params: idParams,
      body: closed({ notes: Type.String({ maxLength: 10_000, pattern: '^[^\\u0000]*$' }) }),
      answers: { 200: { description: 'The letter', schema: letter } },
      handle: (request) => change('note', request, (id) => admin.note(id, request.body.notes)),
    }),
    route({
      method: 'POST',
      path: '/admin/dlq/replay',
      summary: 'Lets failed handlers try again: by ids, by a filter, or all that are pending',
      tag,
      access,
      body: closed(chosenFields),
      answers: {
        202: {
          description: 'How many will be tried',
          schema: closed({ requested: Type.Integer() }),
        },
      },
      async handle(request) {
        const by = askedBy(request);
        const requested = await changeAll('replay', request, (filter) =>
          admin.replayAll(filter, { by }),
        );
        return { status: 202, body: { requested } };
      },
    }),
    route({
      method: 'POST',
      path: '/admin/dlq/discard',
      summary: 'Gives dead letters up: by ids, by a filter, or all that are pending',
      tag,
      access,
      body: closed({ ...chosenFields, reason }),
      answers: {
        200: { description: 'How many', schema: closed({ discarded: Type.Integer() }) },
      },
      async handle(request) {
        const { reason: why, ...body } = request.body;
        const by = askedBy(request);
        const discarded = await changeAll('discard', { ...request, body }, (filter) =>
          admin.discardAll(filter, { by, reason: why }),
        );
        return { body: { discarded } };
      },
    }),
  ];

  /** One that nobody knows would quietly begin at the first page again. */
  async function checkCursor(
    request: Pick<ApiRequest, 'principal'>,
    cursor: string,
  ): Promise<void> {
    const known = await deadLetters.get(cursor);
    if (known !== undefined && isWithin(request, known.tenant)) return;
    throw new MillraceError('CURSOR_INVALID', 'this is no cursor of dead letters', {
      details: { field: 'cursor' },
    });
  }
}

function filterOf(
  request: Pick<ApiRequest, 'principal'>,
  { ids, subscription, type, stream, since, ...query }: LetterQuery,
): DeadLetterFilter {
  const tenant = tenantWithin(request, query.tenant);
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(subscription === undefined ? {} : { handler: subscription }),
    ...(type === undefined ? {} : { eventType: type }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(stream === undefined ? {} : { stream }),
    ...(since === undefined ? {} : { since: timeOf('since', since).toISOString() }),
  };
}
