// Subscriptions over HTTP: status, pause, resume, and reset of checkpoints.

import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import {
  parseResetPosition,
  subscriptionOverview,
} from '../../../subscriptions/subscription-admin.ts';
import { storageOf } from '../../../subscriptions/with-leases.ts';
import { returns, routesOf } from '../api-context.ts';
import { route, type ApiRequest, type Route } from '../../../platform/modules/route.ts';
import {
  actorName,
  audited,
  closed,
  globalList,
  pageOf,
  text,
  type AdminContext,
} from './admin-context.ts';

const { get, post } = routesOf('admin: subscriptions', { get: 'read', post: 'operate' });

const params = closed({ name: text(400) });
export const subscriptionSchema = closed({
  subscription: Type.String(),
  state: Type.Enum(['lost', 'paused', 'running', 'stopped']),
  shards: Type.Integer(),
  workers: Type.Integer({ description: 'Processes that run the subscription.' }),
  deadLetters: Type.Integer({ description: 'Pending dead letters.' }),
  waiting: Type.Integer({ description: 'Events queued after a dead letter of their aggregate.' }),
  position: Type.String({ description: 'All events up to this position are processed.' }),
  head: Type.String(),
  behind: Type.Integer({ description: 'The distance between the position and the head.' }),
  unit: Type.Enum(['events', 'bytes'], {
    description: 'What `behind` counts: events of any type, or bytes on KurrentDB.',
  }),
  seconds: Type.Number({ description: 'The age of the oldest unprocessed event.' }),
});
const shard = closed({
  shard: Type.Integer(),
  position: Type.Optional(
    Type.String({ description: 'All its events up to this position are processed.' }),
  ),
  owner: Type.Optional(
    Type.String({ description: 'The process that runs it; absent: no process.' }),
  ),
  leaseMs: Type.Optional(Type.Integer({ description: 'How long the owner keeps it.' })),
});
const detail = closed({ subscription: subscriptionSchema, shards: Type.Array(shard) });
const state = closed({ subscription: Type.String(), paused: Type.Boolean() });

export function subscriptionRoutes(context: AdminContext): readonly Route[] {
  const { subscriptions: admin, engines } = context.platform;
  const storage = storageOf(engines);

  const overviewOf = async ({ memory }: Pick<ApiRequest, 'memory'>, name?: string) => {
    const named = async () => (await admin.list()).filter((each) => each.subscription === name);
    const all = await subscriptionOverview(name === undefined ? admin : { list: named }, storage);
    return Promise.all(
      all.map(async (each) => {
        // Reads the next event.
        const lag = await memory.load(() => admin.lag(each.subscription));
        return { ...each, ...lag };
      }),
    );
  };

  const shardsOf = async (name: string) => {
    const [known, leases] = await Promise.all([
      storage.checkpoints.get(name),
      storage.leases.list(name),
    ]);
    return (known?.positions ?? []).map((position, at) => {
      const lease = leases.find(({ shard: each, remainingMs }) => each === at && remainingMs > 0);
      return { shard: at, position, owner: lease?.owner, leaseMs: lease?.remainingMs };
    });
  };

  const pauseRoute = (verb: 'pause' | 'resume'): Route =>
    route({
      ...post,
      path: `/admin/subscriptions/{name}/${verb}`,
      summary:
        verb === 'pause' ? 'Pauses a subscription in all processes' : 'Resumes a subscription',
      isGlobal: true,
      params,
      responses: { 200: returns('The new state', state) },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: `subscription.${verb}`, target: name };
        return audited(context, request, what, async () => {
          await admin[verb](name);
          return { body: { subscription: name, paused: verb === 'pause' } };
        });
      },
    });

  return [
    globalList({
      ...get,
      path: '/admin/subscriptions',
      summary: 'All subscriptions with state, workers, lag and dead letters',
      responses: { 200: returns('All subscriptions', pageOf(subscriptionSchema)) },
      list: (request) => overviewOf(request),
    }),
    route({
      ...get,
      path: '/admin/subscriptions/{name}',
      summary: 'A subscription with the position and the owner of each shard',
      isGlobal: true,
      params,
      responses: {
        200: returns('The subscription', detail),
        404: { description: 'No process has started the subscription on this store' },
      },
      async handle(request) {
        const { name } = request.params;
        const found = (await overviewOf(request, name))[0];
        if (found === undefined) {
          throw new MillraceError('SUBSCRIPTION_UNKNOWN', `unknown subscription '${name}'`, {
            details: { name },
          });
        }
        return { body: { subscription: found, shards: await shardsOf(name) } };
      },
    }),
    pauseRoute('pause'),
    pauseRoute('resume'),
    route({
      ...post,
      access: 'admin',
      isGlobal: true,
      path: '/admin/subscriptions/{name}/reset',
      summary: 'Moves the checkpoint, to process events again or to skip them',
      params,
      body: closed({
        to: text(40, "'start', a position, or a date and time."),
      }),
      responses: {
        200: returns(
          'The new checkpoint',
          closed({ subscription: Type.String(), position: Type.String() }),
        ),
        409: { description: 'The subscription is running: pause it first' },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'subscription.reset', target: `${name} to ${request.body.to}` };
        return audited(context, request, what, async () => {
          const to = await parseResetPosition(request.body.to, admin);
          if (to === undefined) throw invalidStart();
          await admin.reset(name, { to, by: actorName(request) });
          return { body: { subscription: name, position: to } };
        });
      },
    }),
  ];
}

function invalidStart(): MillraceError {
  return new MillraceError(
    'REQUEST_INVALID',
    "to must be 'start', a position of 16 digits, or a date and time",
    { details: { field: 'to' } },
  );
}
