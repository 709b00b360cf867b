// Destinations over HTTP: which are known, which are paused, and whose breaker is open.

import { Type } from '../../contracts/type.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { Route } from '../../platform/modules/route.ts';
import { closed, globalList, pageOf } from '../api/admin/admin-context.ts';
import { returns, routesOf, type ApiPlatform } from '../api/api-context.ts';

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
  pausedAt: Type.Optional(Type.String()),
  pausedBy: Type.Optional(Type.String()),
});

export function destinationRoutes({
  engines: { outbox },
  modules,
  delivery,
}: ApiPlatform): readonly Route[] {
  if (outbox === undefined) return [];
  const { get } = routesOf('admin: outbox', 'read');
  const configured = Object.keys(modules.destinations);

  return [
    globalList({
      ...get,
      path: '/admin/destinations',
      summary: 'Destinations with their breakers and pauses',
      responses: { 200: returns('All known destinations', pageOf(destination)) },
      list: async () => {
        const [paused, types] = await Promise.all([outbox.paused(), undeliveredTypes(outbox)]);
        const used = new Set([...types.keys(), ...paused.map((each) => each.integrationType)]);
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
            pausedAt: pause?.pausedAt,
            pausedBy: pause?.pausedBy,
          };
        });
      },
    }),
  ];
}

async function undeliveredTypes(
  outbox: Pick<OutboxLedger, 'list'>,
): Promise<ReadonlyMap<string, number>> {
  const statuses = ['PENDING', 'CLAIMED', 'FAILED', 'DEAD'] as const;
  const pages = await Promise.all(
    statuses.map((status) => outbox.list({ status }, { limit: messagesRead })),
  );
  const counts = new Map<string, number>();
  for (const { integrationType } of pages.flat()) {
    counts.set(integrationType, (counts.get(integrationType) ?? 0) + 1);
  }
  return counts;
}
