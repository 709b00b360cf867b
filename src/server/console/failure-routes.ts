// Failures of all kinds over HTTP, grouped by cause. The routes of each kind replay and discard them.

import { Type } from '../../contracts/type.ts';
import { MillraceError } from '../../foundation/error.ts';
import { route, type ApiRequest, type Route } from '../../platform/modules/route.ts';
import { errorText, shownError } from '../http/masked-fields.ts';
import { returns, routesOf, tenantWithin } from '../api/api-context.ts';
import {
  actorName,
  audited,
  closed,
  failureCauseSchema,
  text,
  type AdminContext,
} from '../api/admin/admin-context.ts';
import { failureDecisions, failureStates } from '../../platform/failures/failure-decisions.ts';
import { failureSources } from '../../platform/failures/failure-sources.ts';
import {
  failureLimits,
  groupFailures,
  readFailures,
  type FailureGroup,
} from '../../platform/failures/failures.ts';

const { get, post } = routesOf('console', { get: 'read', post: 'operate' });
const count = Type.Integer();
const optionalText = Type.Optional(Type.String());
const source = Type.Enum([...failureSources]);

const state = Type.Enum([...failureStates]);
const decisionSchema = closed({
  fingerprint: Type.String(),
  state,
  note: Type.String(),
  by: Type.String(),
  at: Type.String(),
});

const group = closed({
  fingerprint: Type.String(),
  source,
  where: Type.String({ description: 'The subscription, destination or task type.' }),
  title: Type.String({
    description: 'The error, without ids, numbers, times and quoted text.',
  }),
  count,
  final: Type.Integer({ description: 'How many are not tried again by themselves.' }),
  parked: Type.Integer({ description: 'How many park their aggregate.' }),
  tenants: Type.Array(Type.String()),
  first: Type.String(),
  last: Type.String(),
  state,
  decision: Type.Optional(decisionSchema),
  buckets: Type.Array(count, { description: 'Failures by time, from the first failure to now.' }),
});

export const failureSchema = closed({
  source,
  id: Type.String(),
  where: Type.String(),
  type: Type.String(),
  error: errorText(),
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

export function failureRoutes(context: AdminContext): readonly Route[] {
  const { platform } = context;
  const { clock } = platform;
  const decisions = failureDecisions(platform.engines.store, { clock });
  return [
    route({
      ...get,
      path: '/admin/failures',
      summary:
        'Dead letters, failed deliveries and jobs, parked sagas, grouped by cause, the latest cause first',
      query: closed({
        tenant,
        source: Type.Optional(source),
        where: Type.Optional(text(400, 'The subscription, destination, task type, group or saga.')),
        type: Type.Optional(text(400, 'The type of the event, message or job.')),
        state: Type.Optional(
          Type.Enum([...failureStates, 'all'], { description: 'Default: open.' }),
        ),
      }),
      responses: {
        200: returns(
          'Groups, latest first',
          closed({ items: Type.Array(group), looked, isComplete }),
        ),
      },
      async handle(request) {
        const { state: wanted = 'open', source: from, where, type } = request.query;
        const found = await request.memory.load(() =>
          readFailures(
            platform,
            { source: from, where, type, tenant: tenantWithin(request, request.query.tenant) },
            request.signal,
          ),
        );
        const groups = groupFailures(found.items, clock.now(), await decisions.all());
        return {
          body: {
            items: groups
              .filter((each) => wanted === 'all' || each.state === wanted)
              .map((each) => shownGroup(request, each)),
            looked: found.items.length,
            isComplete: found.isComplete,
          },
        };
      },
    }),
    route({
      ...get,
      path: '/admin/failures/{fingerprint}',
      summary: 'The failures of one cause, newest first',
      params: closed({ fingerprint: text(12) }),
      query: closed({ tenant }),
      responses: {
        200: returns(
          `At most ${failureLimits.itemsMax} failures, latest first, and the time of the response, for a bulk action`,
          closed({ group, items: Type.Array(failureSchema), until: Type.String() }),
        ),
      },
      async handle(request) {
        const { fingerprint } = request.params;
        const until = new Date(clock.now()).toISOString();
        const tenantId = tenantWithin(request, request.query.tenant);
        const { items } = await request.memory.load(() =>
          readFailures(platform, { fingerprint, tenant: tenantId }, request.signal),
        );
        const found = items.toSorted((a, b) => (a.at > b.at ? -1 : 1));
        const [only] = groupFailures(found, clock.now(), await decisions.all());
        if (only === undefined) {
          throw new MillraceError('NOT_FOUND', `no failure has the cause '${fingerprint}'`, {
            details: { fingerprint },
          });
        }
        return {
          body: {
            group: shownGroup(request, only),
            items: found.slice(0, failureLimits.itemsMax),
            until,
          },
        };
      },
    }),
    route({
      ...post,
      path: '/admin/failures/{fingerprint}/decision',
      isGlobal: true,
      summary: 'Resolves or ignores a cause until it happens again, reopens it, or sets its note',
      params: closed({ fingerprint: text(12) }),
      body: closed({
        state: Type.Optional(state),
        note: Type.Optional(Type.String({ maxLength: 2_000, pattern: '^[^\\u0000]*$' })),
      }),
      responses: { 200: returns('The decision', decisionSchema) },
      handle(request) {
        const { fingerprint } = request.params;
        const what = { action: 'failure.decide', target: fingerprint };
        return audited(context, request, what, async () => ({
          body: await decisions.decide(fingerprint, { ...request.body, by: actorName(request) }),
        }));
      },
    }),
  ];
}

function shownGroup(
  { principal }: Pick<ApiRequest, 'principal'>,
  { name, ...shown }: FailureGroup,
): Omit<FailureGroup, 'name'> {
  return { ...shown, title: shownError(principal, { error: shown.title, name }) };
}
