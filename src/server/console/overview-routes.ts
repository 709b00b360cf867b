// The numbers of the overview.

import { failureSources, type FailureSource } from '../../platform/failures/failure-sources.ts';
import { Type } from '../../contracts/type.ts';
import { defineSocket, type ModuleSocket } from '../../platform/modules/module-web.ts';
import { checkGlobal } from '../../platform/modules/principal.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { returns, routesOf } from '../api/api-context.ts';
import { errorText } from '../http/masked-fields.ts';
import { closed } from '../api/admin/admin-context.ts';
import { subscriptionSchema } from '../api/admin/subscription-routes.ts';
import type { OverviewReader } from './overview.ts';

const { get } = routesOf('console', 'read');
const count = Type.Integer();
const optionalNumber = Type.Optional(Type.Number());

const overview = closed({
  at: Type.String(),
  head: Type.String({ description: 'The position of the last event.' }),
  subscriptions: Type.Array(subscriptionSchema),
  outbox: Type.Optional(
    closed({
      counts: closed({
        PENDING: count,
        CLAIMED: count,
        SENT: count,
        FAILED: count,
        DEAD: count,
        DISCARDED: count,
      }),
      paused: Type.Array(Type.String(), { description: 'Paused destinations.' }),
    }),
  ),
  jobs: Type.Optional(closed({ waiting: count, running: count, failed: count, done: count })),
  failures: closed(
    Object.fromEntries(failureSources.map((source) => [source, count])) as Record<
      FailureSource,
      typeof count
    >,
  ),
  failing: Type.Array(
    closed({ subscription: Type.String(), failures: count, reason: errorText() }),
    { description: 'Subscriptions of this process that end again and again.' },
  ),
  series: Type.Array(
    closed({
      at: Type.String(),
      eventsPerSecond: optionalNumber,
      lagSeconds: optionalNumber,
      failures: optionalNumber,
      outbox: optionalNumber,
      jobs: optionalNumber,
    }),
    { description: 'The last 15 minutes; numbers without a time in the past are absent.' },
  ),
});

export function overviewRoutes(reader: OverviewReader): readonly Route[] {
  return [
    route({
      ...get,
      path: '/admin/overview',
      summary: 'Rates, lag, failures, outbox and jobs, now and in the last 15 minutes',
      responses: { 200: returns('The overview', overview) },
      isGlobal: true,
      handle: async () => ({ body: await reader.read() }),
    }),
  ];
}

/** Tells open consoles that the overview has changed; they ask for it again. */
export function overviewSocket(reader: OverviewReader): ModuleSocket {
  return defineSocket({
    messages: { 'console.watch': Type.Object({}), 'console.unwatch': Type.Object({}) },
    sends: { 'console.changed': Type.Object({ topic: Type.Literal('overview') }) },
    connect(client) {
      let watching: Disposable | undefined;
      const stop = (): void => {
        watching?.[Symbol.dispose]();
        watching = undefined;
      };
      return {
        on: {
          'console.watch': () => {
            checkGlobal(client.principal);
            watching ??= reader.watch(() =>
              client.send({ type: 'console.changed', topic: 'overview' }),
            );
          },
          'console.unwatch': stop,
        },
        [Symbol.dispose]: stop,
      };
    },
  });
}
