// Failures of all kinds over HTTP, grouped by cause. The routes of each kind replay and discard them.

import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import { returns, routesOf, tenantWithin, type ApiPlatform } from '../api/api-context.ts';
import { closed, failureCauseSchema, text } from '../api/admin/admin-context.ts';
import { failureSources } from '../../platform/failures/failure-sources.ts';
import { failureLimits, groupFailures, readFailures } from '../../platform/failures/failures.ts';

const { get } = routesOf('console', 'operate');
const count = Type.Integer();
const optionalText = Type.Optional(Type.String());
const source = Type.Enum([...failureSources]);

const group = closed({
  fingerprint: Type.String(),
  source,
  where: Type.String({ description: 'The subscription, destination or task type.' }),
  title: Type.String({ description: 'The error, without ids, numbers, times and quoted text.' }),
  count,
  final: Type.Integer({ description: 'How many are not tried again by themselves.' }),
  parked: Type.Integer({ description: 'How many park their aggregate.' }),
  tenants: Type.Array(Type.String()),
  first: Type.String(),
  last: Type.String(),
  buckets: Type.Array(count, { description: 'Failures by time, from the first failure to now.' }),
});

const failure = closed({
  source,
  id: Type.String(),
  where: Type.String(),
  type: Type.String(),
  error: Type.String(),
  cause: failureCauseSchema,
  at: Type.String(),
  attempts: count,
  tenant: optionalText,
  stream: optionalText,
  correlationId: optionalText,
  isFinal: Type.Boolean({ description: 'False: it is tried again by itself.' }),
  isParked: Type.Boolean({ description: 'Its aggregate waits for a decision.' }),
});

const tenant = Type.Optional(text(100));
const looked = Type.Integer({ description: 'How many failures were read.' });
const isComplete = Type.Boolean({
  description: `False: there are more than ${failureLimits.lookedMax} failures of one kind.`,
});

export function failureRoutes(platform: ApiPlatform): readonly Route[] {
  return [
    route({
      ...get,
      path: '/admin/failures',
      summary: 'Dead letters, failed deliveries and failed jobs, grouped by cause',
      query: closed({ tenant }),
      responses: {
        200: returns(
          'Groups, latest first',
          closed({ items: Type.Array(group), looked, isComplete }),
        ),
      },
      async handle(request) {
        const found = await readFailures(platform, {
          tenant: tenantWithin(request, request.query.tenant),
        });
        return {
          body: {
            items: groupFailures(found.items, platform.clock.now()),
            looked: found.items.length,
            isComplete: found.isComplete,
          },
        };
      },
    }),
    route({
      ...get,
      path: '/admin/failures/{fingerprint}',
      summary: 'The failures of one cause',
      params: closed({ fingerprint: text(12) }),
      query: closed({ tenant }),
      responses: {
        200: returns(
          `At most ${failureLimits.itemsMax} failures, latest first, and the ids of all of them`,
          closed({ group, items: Type.Array(failure), ids: Type.Array(Type.String()) }),
        ),
      },
      async handle(request) {
        const { fingerprint } = request.params;
        const { items } = await readFailures(platform, {
          fingerprint,
          tenant: tenantWithin(request, request.query.tenant),
        });
        const found = items.toSorted((a, b) => (a.at > b.at ? -1 : 1));
        const [only] = groupFailures(found, platform.clock.now());
        if (only === undefined) {
          throw new MillraceError('NOT_FOUND', `no failure has the cause '${fingerprint}'`, {
            details: { fingerprint },
          });
        }
        // Deliveries that are still tried cannot be replayed.
        const ids = found.filter(({ isFinal }) => isFinal).map(({ id }) => id);
        return { body: { group: only, items: found.slice(0, failureLimits.itemsMax), ids } };
      },
    }),
  ];
}
