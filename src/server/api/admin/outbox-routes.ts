// The outbox over HTTP: list, replay and purge messages; pause and resume destinations.

import type { Static, TObject, TProperties } from 'typebox';
import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { messagePages } from '../../../outbox/message-pages.ts';
import type { OutboxFilter, OutboxLedger } from '../../../outbox/outbox-ledger.ts';
import type { OutboxMessage } from '../../../outbox/outbox-message.ts';
import { outboxLimits } from '../../../outbox/outbox-limits.ts';
import { filterText } from '../../../platform/audit-log.ts';
import { isWithin, tenantWithin, returns, routesOf } from '../api-context.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import { errorText, payloadText, payloadValue } from '../../http/masked-fields.ts';
import {
  actorName,
  audited,
  bulkFilter,
  closed,
  failureCauseSchema,
  globalList,
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

const { get, post } = routesOf('admin: outbox', { get: 'read', post: 'operate' });
const statuses = ['PENDING', 'CLAIMED', 'SENT', 'FAILED', 'DEAD', 'DISCARDED'] as const;

const optional = Type.Optional(Type.String());
const json = Type.Record(Type.String(), Type.Unknown());
const job = Type.Object({
  id: Type.String(),
  queue: Type.String(),
  attempt: Type.Integer({ description: 'The first is 1.' }),
  enqueuedAt: Type.String(),
  startedAt: Type.String(),
  finishedAt: optional,
  outcome: Type.Enum(['sent', 'failed', 'dead', 'running', 'lost']),
});
const attempt = closed({
  at: Type.String(),
  durationMs: Type.Number(),
  outcome: Type.Enum(['sent', 'failed', 'dead']),
  status: Type.Optional(Type.Integer({ description: 'The status of an HTTP response.' })),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'The headers of the request; values that may be secrets are masked.',
    }),
  ),
  answer: Type.Optional(payloadText('The first 2 KiB of the response.')),
  error: Type.Optional(errorText()),
  cause: Type.Optional(failureCauseSchema),
});
const message = Type.Object(
  {
    id: Type.String(),
    sourceStreamId: Type.String(),
    sourceEventId: Type.String(),
    integrationType: Type.String(),
    eventType: Type.String(),
    payload: payloadValue(),
    headers: Type.Optional(json),
    tenantId: optional,
    userId: optional,
    correlationId: optional,
    orderingKey: optional,
    dueAt: Type.String(),
    attempts: Type.Integer({ description: 'Failed attempts.' }),
    maxAttempts: Type.Integer(),
    status: Type.Enum([...statuses]),
    lockedAt: optional,
    lockedBy: optional,
    createdAt: Type.String(),
    updatedAt: Type.String(),
    sentAt: optional,
    lastError: Type.Optional(errorText()),
    unreadable: Type.Optional(
      Type.String({ description: 'Why the stored payload or headers cannot be read.' }),
    ),
    cause: Type.Optional(failureCauseSchema),
    discarded: Type.Optional(closed({ by: Type.String(), reason: Type.String() })),
    jobs: Type.Optional(
      Type.Array(job, { description: 'Jobs of the delivery queue, if one is used.' }),
    ),
  },
  { title: 'OutboxMessage' },
);
const paused = closed({
  integrationType: Type.String(),
  pausedAt: Type.String(),
  pausedBy: Type.String(),
});
const destination = text(outboxLimits.integrationTypeMax, 'For example kafka:payments.');
const changed = closed({
  destination: Type.String(),
  paused: Type.Boolean(),
  changed: Type.Boolean({ description: 'False: no change was necessary.' }),
});

const outcomes = closed({
  items: Type.Array(
    closed({
      id: Type.String(),
      outcome: Type.Enum(['changed', 'claimed', 'unchanged'], {
        description:
          'claimed: an attempt is running, so the message was left alone. unchanged: it was due or ended before; see its status.',
      }),
      status: Type.Enum([...statuses], { description: 'The status after the request.' }),
    }),
    { description: 'Unknown messages, and those of other tenants, are missing.' },
  ),
});
const chosenIds = Type.Array(uuid, { minItems: 1, maxItems: 500 });

const filterFields = {
  destination: Type.Optional(destination),
  tenant: Type.Optional(text(outboxLimits.tenantIdMax)),
  since: Type.Optional(time),
};

const chosenFields = { ids: idsField, ...filterFields, all: Type.Optional(Type.Boolean()) };

export function outboxRoutes(context: AdminContext): readonly Route[] {
  const { outbox: ledger } = context.platform.engines;
  if (ledger === undefined) return [];

  /** Messages of other tenants count as unknown. */
  const messageOf = async (
    { memory, ...request }: Pick<ApiRequest, 'memory' | 'principal'>,
    id: string,
  ) => {
    const found = await memory.load(() => ledger.find(id));
    if (found !== undefined && isWithin(request, found.tenantId)) return found;
    throw new MillraceError('OUTBOX_UNKNOWN', `unknown message '${id}'`, { details: { id } });
  };

  const statusesOf = (
    { memory }: Pick<ApiRequest, 'memory'>,
    filter: OutboxFilter,
  ): Promise<readonly Pick<OutboxMessage, 'id' | 'status'>[]> =>
    memory.load(async () => {
      const found: Pick<OutboxMessage, 'id' | 'status'>[] = [];
      for await (const page of messagePages(ledger, filter)) {
        found.push(...page.map(({ id, status }) => ({ id, status })));
      }
      return found;
    });

  const changeRoute = (
    verb: 'retry' | 'discard',
    summary: string,
    fields: TProperties,
    change: (ids: readonly string[], by: string, reason: string) => Promise<readonly string[]>,
  ): Route =>
    route({
      ...post,
      path: `/admin/outbox/${verb}`,
      summary,
      body: closed({ ids: chosenIds, ...fields }),
      responses: { 200: returns('What happened to each message', outcomes) },
      async handle(request) {
        const { ids, reason = '' } = request.body as { ids: string[]; reason?: string };
        const what = { action: `outbox.${verb}`, target: filterText({ ids }) };
        return audited(context, request, what, async () => {
          const filter = filterOf(request, { ids });
          const known = await statusesOf(request, filter);
          const chosen = known.map(idOf);
          const done = new Set(await change(chosen, actorName(request), reason));
          const after = await statusesOf(request, filter);
          const items = after.map(({ id, status }) => {
            const other = status === 'CLAIMED' ? 'claimed' : 'unchanged';
            return { id, outcome: done.has(id) ? 'changed' : other, status };
          });
          return { body: { items } };
        });
      },
    });

  const pauseRoute = (verb: 'pause' | 'resume'): Route =>
    route({
      ...post,
      path: `/admin/outbox/${verb}`,
      summary:
        verb === 'pause'
          ? 'Pauses a destination; running delivery attempts complete'
          : 'Resumes a destination',
      isGlobal: true,
      body: closed({ destination }),
      responses: { 200: returns('The new state', changed) },
      handle: (request) => {
        const target = request.body.destination;
        return audited(context, request, { action: `outbox.${verb}`, target }, async () => {
          const isChanged =
            verb === 'pause'
              ? await ledger.pause(target, actorName(request))
              : await ledger.resume(target);
          return {
            body: { destination: target, paused: verb === 'pause', changed: isChanged },
          };
        });
      },
    });

  return [
    route({
      ...get,
      path: '/admin/outbox',
      summary: 'Outgoing messages, newest first',
      query: closed({
        ...filterFields,
        status: Type.Optional(Type.Enum([...statuses])),
        ...idPageQuery,
      }),
      responses: { 200: returns('A page', pageOf(message)) },
      async handle(request) {
        const { status, limit, cursor, ...query } = request.query;
        const filter = { ...filterOf(request, query), status };
        return pageBy(request.memory, { limit, cursor }, (part) => ledger.list(filter, part), idOf);
      },
    }),
    route({
      ...get,
      path: '/admin/outbox/counts',
      summary: 'The number of messages by status',
      responses: {
        200: returns(
          'By status',
          closed(Object.fromEntries(statuses.map((each) => [each, Type.Integer()]))),
        ),
      },
      isGlobal: true,
      handle: async () => ({ body: await ledger.counts() }),
    }),
    globalList({
      ...get,
      path: '/admin/outbox/paused',
      summary: 'Paused destinations',
      responses: { 200: returns('All paused destinations', pageOf(paused)) },
      list: () => ledger.paused(),
    }),
    route({
      ...get,
      path: '/admin/outbox/{id}',
      summary: 'A message with its payload',
      params: closed({ id: uuid }),
      responses: { 200: returns('The message', message) },
      async handle(request) {
        return { body: await messageOf(request, request.params.id) };
      },
    }),
    route({
      ...get,
      path: '/admin/outbox/{id}/attempts',
      summary: 'The attempts of a message that failed at least once: the last 20, oldest first',
      params: closed({ id: uuid }),
      responses: { 200: returns('The attempts', closed({ items: Type.Array(attempt) })) },
      async handle(request) {
        const { id } = request.params;
        await messageOf(request, id);
        return { body: { items: await ledger.attemptLog(id) } };
      },
    }),
    route({
      ...post,
      path: '/admin/outbox/replay',
      summary: 'Replays dead messages by ids, by a filter, or all of them',
      body: closed(chosenFields),
      responses: {
        200: returns('The number of replayed messages', closed({ replayed: Type.Integer() })),
      },
      async handle(request) {
        const query = bulkFilter(request.body, 'ids or a filter');
        const what = { action: 'outbox.replay', target: filterText(query) };
        const replayed = await audited(context, request, what, async () =>
          ledger.replay(filterOf(request, query)),
        );
        return { body: { replayed } };
      },
    }),
    changeRoute(
      'retry',
      'Makes messages that wait for their next attempt due now; attempts and order stay',
      {},
      (ids) => ledger.retryNow(ids),
    ),
    changeRoute(
      'discard',
      'Ends waiting and dead messages as DISCARDED; the next message of their ordering key follows',
      { reason: text(2_000, 'Stored with the message.') },
      (ids, by, reason) => ledger.discard(ids, { by, reason }),
    ),
    pauseRoute('pause'),
    pauseRoute('resume'),
    route({
      ...post,
      access: 'admin',
      isGlobal: true,
      path: '/admin/outbox/purge',
      summary: 'Deletes messages that were sent before a time',
      body: closed({ before: time }),
      responses: {
        200: returns('The number of deleted messages', closed({ purged: Type.Integer() })),
      },
      async handle(request) {
        const { before } = request.body;
        const what = { action: 'outbox.purge', target: `sent before ${before}` };
        const purged = await audited(context, request, what, async () => {
          return purge(ledger, timeOf('before', before), request.signal);
        });
        return { body: { purged } };
      },
    }),
  ];
}

async function purge(
  ledger: Pick<OutboxLedger, 'purge'>,
  before: Date,
  signal: AbortSignal,
): Promise<number> {
  for (let purged = 0; ;) {
    if (signal.aborted)
      throw new MillraceError('ABORTED', `aborted after deleting ${purged} messages`);
    const count = await ledger.purge(before, outboxLimits.purgeBatchDefault);
    purged += count;
    if (count < outboxLimits.purgeBatchDefault) return purged;
  }
}

function filterOf(
  request: Pick<ApiRequest, 'principal'>,
  {
    ids,
    destination: integrationType,
    tenant,
    since,
  }: Omit<Static<TObject<typeof chosenFields>>, 'all'>,
): OutboxFilter {
  return {
    ids,
    integrationType,
    tenantId: tenantWithin(request, tenant),
    since: timeOf('since', since),
  };
}
