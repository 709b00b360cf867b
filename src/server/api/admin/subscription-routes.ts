// Subscriptions over HTTP: how far they are, who works on them, and where they begin again.

import { Type } from '../../../contracts/type.ts';
import { MillraceError } from '../../../foundation/error.ts';
import { placeOf, subscriptionOverview } from '../../../subscriptions/subscription-overview.ts';
import { withLeases } from '../../../subscriptions/with-leases.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import {
  askedBy,
  audited,
  checkGlobal,
  closed,
  pageOf,
  text,
  type AdminContext,
} from './admin-context.ts';

const tag = 'admin: subscriptions';
const access = 'admin';

const params = closed({ name: text(400) });
const overview = closed({
  subscription: Type.String(),
  state: Type.Enum(['paused', 'running', 'stopped']),
  shards: Type.Integer(),
  workers: Type.Integer({ description: 'Processes that work on it now.' }),
  deadLetters: Type.Integer({ description: 'Pending ones.' }),
  waiting: Type.Integer({ description: 'Events that wait behind one of their aggregate.' }),
  position: Type.String({ description: 'Everything up to here is done.' }),
  head: Type.String(),
  behind: Type.Integer({ description: 'Events of any kind up to the head.' }),
  seconds: Type.Number({ description: 'The age of the oldest event that is not done.' }),
});
const state = closed({ subscription: Type.String(), paused: Type.Boolean() });

export function subscriptionRoutes(context: AdminContext): readonly Route[] {
  const { subscriptions: admin, engines } = context.platform;
  const { leases } = engines;
  const storage = leases === undefined ? engines.storage : withLeases(engines.storage, leases);

  const pauseRoute = (verb: 'pause' | 'resume'): Route =>
    route({
      method: 'POST',
      path: `/admin/subscriptions/{name}/${verb}`,
      summary: verb === 'pause' ? 'Stops a subscription, in all processes' : 'Lets it go on',
      tag,
      access,
      params,
      answers: { 200: { description: 'As it is now', schema: state } },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: `subscription.${verb}`, target: name };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          await admin[verb](name);
          return { body: { subscription: name, paused: verb === 'pause' } };
        });
      },
    });

  return [
    route({
      method: 'GET',
      path: '/admin/subscriptions',
      summary: 'All subscriptions: state, workers, lag, dead letters',
      tag,
      access,
      answers: { 200: { description: 'All of them', schema: pageOf(overview) } },
      async handle(request) {
        checkGlobal(request);
        const all = await subscriptionOverview(admin, storage);
        const items = await Promise.all(
          all.map(async (each) => ({ ...each, ...(await admin.lag(each.subscription)) })),
        );
        return { body: { items } };
      },
    }),
    pauseRoute('pause'),
    pauseRoute('resume'),
    route({
      method: 'POST',
      path: '/admin/subscriptions/{name}/reset',
      summary: 'Moves a checkpoint, so that events are handled again, or left out',
      tag,
      access,
      params,
      body: closed({
        to: text(40, "'start', a position, or a date and time."),
      }),
      answers: {
        200: {
          description: 'Where it begins again',
          schema: closed({ subscription: Type.String(), position: Type.String() }),
        },
        409: { description: 'It is running: pause it first' },
      },
      handle: (request) => {
        const { name } = request.params;
        const what = { action: 'subscription.reset', target: `${name} to ${request.body.to}` };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          const to = await placeOf(request.body.to, admin);
          if (to === undefined) throw noPlace();
          await admin.reset(name, { to, by: askedBy(request) });
          return { body: { subscription: name, position: to } };
        });
      },
    }),
  ];
}

function noPlace(): MillraceError {
  return new MillraceError(
    'REQUEST_INVALID',
    "to is 'start', a position of 16 digits, or a date and time",
    { details: { field: 'to' } },
  );
}
