// Bulk actions on failures over HTTP: preview, start with the number that was shown, progress, outcome of each, cancel.

import { Type } from '../../contracts/type.ts';
import { errorText } from '../http/masked-fields.ts';
import { MillraceError } from '../../foundation/error.ts';
import { filterText } from '../../platform/audit-log.ts';
import {
  bulkActions,
  bulkItems,
  bulkType,
  matchFailures,
  type BulkOrder,
} from '../../platform/failures/bulk-action.ts';
import { failureSources } from '../../platform/failures/failure-sources.ts';
import { failureLimits } from '../../platform/failures/failures.ts';
import { route, type ApiRequest, type Route } from '../../platform/modules/route.ts';
import { taskStates } from '../../tasks/task-job.ts';
import type { Task } from '../../tasks/task-record.ts';
import { isWithin, returns, routesOf, tenantWithin } from '../api/api-context.ts';
import {
  actorName,
  audited,
  closed,
  text,
  time,
  timeOf,
  type AdminContext,
} from '../api/admin/admin-context.ts';
import { failureSchema } from './failure-routes.ts';

const { get, post } = routesOf('console', { get: 'read', post: 'operate' });
const count = Type.Integer();
const optional = Type.Optional(Type.String());
const action = Type.Enum([...bulkActions]);
const source = Type.Enum([...failureSources]);
const filter = closed({
  source: Type.Optional(source),
  where: Type.Optional(text(400, 'The subscription, destination, task type, group or saga.')),
  fingerprint: Type.Optional(text(12)),
  fingerprints: Type.Optional(Type.Array(text(12), { minItems: 1, maxItems: 500 })),
  tenant: Type.Optional(text(100)),
  type: Type.Optional(text(400, 'The type of the event, message or job.')),
  ids: Type.Optional(Type.Array(text(400), { minItems: 1, maxItems: 500 })),
});
const until = Type.String({ description: 'Failures after this time are not changed.' });

const bulkSchema = closed({
  id: Type.String(),
  action,
  filter,
  until,
  matched: count,
  by: Type.String(),
  reason: Type.String(),
  state: Type.Enum([...taskStates]),
  done: Type.Integer({ description: 'How many were changed so far.' }),
  unchanged: Type.Integer({ description: 'How many needed no change any more.' }),
  startedAt: Type.String(),
  endedAt: optional,
  error: Type.Optional(errorText()),
});
const item = closed({
  source,
  id: Type.String(),
  outcome: Type.Enum(['waiting', 'done', 'unchanged'], {
    description:
      'unchanged: it was no longer failed, or this action changed it right before its process died.',
  }),
});
const idParams = closed({ id: text(120) });

export function bulkRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;

  const withinCaller = <Filter extends { readonly tenant?: string | undefined }>(
    request: Pick<ApiRequest, 'principal'>,
    given: Filter,
  ): Filter => ({ ...given, tenant: tenantWithin(request, given.tenant) });

  const find = async (
    { memory, ...request }: Pick<ApiRequest, 'memory' | 'principal'>,
    id: string,
  ): Promise<Task> => {
    const tasks = await platform.tasks();
    const found = await memory.load(() => tasks.get(id));
    if (found?.type === bulkType.name && isWithin(request, found.tenant)) return found;
    throw new MillraceError('NOT_FOUND', `unknown bulk action '${id}'`, { details: { id } });
  };

  return [
    route({
      ...post,
      path: '/admin/bulk/preview',
      summary: 'Counts the failures that a bulk action would change, and returns the latest',
      body: closed({ action, filter }),
      responses: {
        200: returns(
          'The number to start the action with',
          closed({
            matched: count,
            until,
            isComplete: Type.Boolean({
              description: `False: there are more than ${failureLimits.lookedMax} failures of one kind; the action changes those that were counted.`,
            }),
            samples: Type.Array(failureSchema),
          }),
        ),
      },
      async handle(request) {
        const now = new Date(platform.clock.now()).toISOString();
        const found = await request.memory.load(() =>
          matchFailures(
            platform,
            {
              action: request.body.action,
              filter: withinCaller(request, request.body.filter),
              until: now,
            },
            request.signal,
          ),
        );
        const samples = found.items.toSorted((a, b) => (a.at > b.at ? -1 : 1)).slice(0, 5);
        const { isComplete } = found;
        return { body: { matched: found.items.length, until: now, isComplete, samples } };
      },
    }),
    route({
      ...post,
      path: '/admin/bulk',
      summary: 'Replays, retries or discards all failures that match a filter, as a job',
      body: closed({
        action,
        filter,
        until: time,
        matched: Type.Integer({ minimum: 1, description: 'The number that the person saw.' }),
        reason: Type.Optional(text(2_000, 'Required to discard; stored with each failure.')),
      }),
      responses: {
        202: returns('The action', bulkSchema),
        409: { description: 'Another number of failures matches now: details.matched' },
      },
      async handle(request) {
        const { reason = '', matched, action: verb } = request.body;
        if (verb === 'discard' && reason === '') {
          throw new MillraceError('REQUEST_INVALID', 'send the reason to discard failures', {
            details: { field: 'reason' },
          });
        }
        const order: BulkOrder = {
          action: verb,
          filter: withinCaller(request, request.body.filter),
          until: timeOf('until', request.body.until).toISOString(),
          matched,
          by: actorName(request),
          reason,
        };
        const target = filterText({ ...order.filter, matched });
        return audited(context, request, { action: `bulk.${verb}`, target }, async () => {
          const { items } = await request.memory.load(() =>
            matchFailures(platform, order, request.signal),
          );
          if (items.length !== matched) {
            throw new MillraceError(
              'BULK_COUNT_CHANGED',
              `${items.length} failures match now, not ${matched}`,
              { details: { matched: items.length } },
            );
          }
          const { id } = await platform.startBulk(order);
          return { status: 202, body: toBulk(await find(request, id)) };
        });
      },
    }),
    route({
      ...get,
      path: '/admin/bulk',
      summary: 'The latest bulk actions, newest first',
      responses: {
        200: returns(
          'At most 50 actions, fewer if they are large',
          closed({ items: Type.Array(bulkSchema) }),
        ),
      },
      async handle(request) {
        const tasks = await platform.tasks();
        const tenant = tenantWithin(request, undefined);
        const page = await request.memory.page({ limit: 50, cursor: undefined }, async (part) => {
          const found = await tasks.list({ type: bulkType.name, tenant }, part);
          return { items: found.tasks, cursor: found.cursor };
        });
        return { body: { items: page.items.map(toBulk) } };
      },
    }),
    route({
      ...get,
      path: '/admin/bulk/{id}',
      summary: 'A bulk action and its progress',
      params: idParams,
      responses: { 200: returns('The action', bulkSchema) },
      handle: async (request) => ({ body: toBulk(await find(request, request.params.id)) }),
    }),
    route({
      ...get,
      path: '/admin/bulk/{id}/items',
      summary: 'The outcome of each failure of a bulk action so far',
      params: idParams,
      query: closed({ from: Type.Optional(Type.Integer({ minimum: 0 })) }),
      responses: {
        200: returns(
          'At most 1,000 from this one',
          closed({ items: Type.Array(item), next: Type.Optional(count) }),
        ),
      },
      async handle(request) {
        const { from = 0 } = request.query;
        const all = bulkItems(await find(request, request.params.id));
        const end = from + 1_000;
        return {
          body: { items: all.slice(from, end), ...(all.length > end ? { next: end } : {}) },
        };
      },
    }),
    route({
      ...post,
      path: '/admin/bulk/{id}/cancel',
      summary: 'Stops a bulk action; what it has changed stays changed',
      params: idParams,
      responses: { 200: returns('The action', bulkSchema) },
      handle: (request) => {
        const { id } = request.params;
        return audited(context, request, { action: 'bulk.cancel', target: id }, async () => {
          await find(request, id);
          const tasks = await platform.tasks();
          await request.memory.load(() => tasks.cancel(id, { reason: 'stopped by an operator' }));
          return { body: toBulk(await find(request, id)) };
        });
      },
    }),
  ];
}

function toBulk(job: Task) {
  const { id, state, payload, error, enqueuedAt, endedAt } = job;
  const items = bulkItems(job);
  const countOf = (outcome: string): number =>
    items.filter((each) => each.outcome === outcome).length;
  return {
    ...(payload as BulkOrder),
    id,
    state,
    done: countOf('done'),
    unchanged: countOf('unchanged'),
    startedAt: enqueuedAt.toISOString(),
    ...(endedAt === undefined ? {} : { endedAt: endedAt.toISOString() }),
    ...(error === undefined ? {} : { error: error.message }),
  };
}
