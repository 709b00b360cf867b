// Destinations over HTTP: which are known, which are paused, whose breaker is open, how fast they are; and a test of one.

import { Type } from '../../contracts/type.ts';
import { messagePages } from '../../outbox/message-pages.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import { outboxLimits } from '../../outbox/outbox-limits.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import {
  audited,
  closed,
  globalList,
  pageOf,
  text,
  type AdminContext,
} from '../api/admin/admin-context.ts';
import { returns, routesOf } from '../api/api-context.ts';

/** How many messages of each status are read to find the destinations in use. */
const messagesRead = 500;

const destination = closed({
  destination: Type.String({ description: 'The integration type.' }),
  module: Type.Boolean({ description: 'A module of this process sends to it.' }),
  undelivered: Type.Integer({
    description: `Messages not yet delivered, among the oldest ${messagesRead} of each status.`,
  }),
  breaker: Type.Enum(['closed', 'open', 'half-open'], { description: 'In this process.' }),
  openUntil: Type.Optional(Type.String()),
  perSecond: Type.Optional(
    Type.Number({
      description: 'Calls per second of this process in the last 5 minutes. Missing: no call.',
    }),
  ),
  p95Ms: Type.Optional(
    Type.Number({ description: '95 of 100 of these calls took at most this many milliseconds.' }),
  ),
  pausedAt: Type.Optional(Type.String()),
  pausedBy: Type.Optional(Type.String()),
});

const testType = 'millrace.test.v1';

export function destinationRoutes(context: AdminContext): readonly Route[] {
  const { engines, modules, delivery } = context.platform;
  const { outbox, traces } = engines;
  if (outbox === undefined) return [];
  const { get, post } = routesOf('admin: outbox', { get: 'read', post: 'operate' });
  const configured = Object.keys(modules.destinations);

  return [
    globalList({
      ...get,
      path: '/admin/destinations',
      summary: 'Destinations with their breakers and pauses',
      responses: { 200: returns('All known destinations', pageOf(destination)) },
      list: async ({ memory }) => {
        const paused = await outbox.paused();
        const types = await memory.load(() => undeliveredTypes(outbox));
        const activity = delivery.activity();
        const used = new Set([
          ...types.keys(),
          ...activity.keys(),
          ...paused.map((each) => each.integrationType),
        ]);
        // A setting for `webhook` serves `webhook:partner` as well: the types in use stand for it.
        const unused = configured.filter(
          (name) => !used.has(name) && ![...used].some((type) => type.startsWith(`${name}:`)),
        );
        return [...used, ...unused].toSorted().map((type) => {
          const pause = paused.find(({ integrationType }) => integrationType === type);
          const breaker = delivery.breakerOf(type);
          return {
            destination: type,
            module: configured.some((name) => type === name || type.startsWith(`${name}:`)),
            undelivered: types.get(type) ?? 0,
            breaker: breaker.kind,
            openUntil:
              breaker.kind === 'open' ? new Date(breaker.untilMs).toISOString() : undefined,
            ...activity.get(type),
            pausedAt: pause?.pausedAt,
            pausedBy: pause?.pausedBy,
          };
        });
      },
    }),
    route({
      ...post,
      path: '/admin/destinations/test',
      summary: 'Sends a test message to a destination, once',
      description: `A message of the type ${testType} in the outbox, caused by the entry of the audit: it has attempts, a trace and the limits of any other message. It is not retried.`,
      isGlobal: true,
      body: closed({
        destination: text(outboxLimits.integrationTypeMax, 'For example webhook:partner.'),
      }),
      responses: {
        200: returns('The message', closed({ id: Type.String(), correlationId: Type.String() })),
      },
      async handle(request) {
        const { destination: integrationType } = request.body;
        const what = { action: 'destination.test', target: integrationType };
        return audited(context, request, what, async (record) => {
          const { eventId, correlationId, stream } = record;
          const { id } = await outbox.enqueue({
            sourceStreamId: stream,
            sourceEventId: eventId,
            integrationType,
            eventType: testType,
            payload: { test: true, message: 'Test message, sent by an operator.' },
            correlationId,
            maxAttempts: 1,
          });
          // Events of system streams are not indexed otherwise.
          await traces?.add([{ ...record, tenant: '' }]);
          return { body: { id, correlationId } };
        });
      },
    }),
  ];
}

async function undeliveredTypes(
  outbox: Pick<OutboxLedger, 'list'>,
): Promise<ReadonlyMap<string, number>> {
  const statuses = ['PENDING', 'CLAIMED', 'FAILED', 'DEAD'] as const;
  const counts = new Map<string, number>();
  for (const status of statuses) {
    for await (const page of messagePages(outbox, { status }, messagesRead)) {
      for (const { integrationType } of page) {
        counts.set(integrationType, (counts.get(integrationType) ?? 0) + 1);
      }
    }
  }
  return counts;
}
