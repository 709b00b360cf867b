// What the console asks for: the numbers of the overview, and where an id belongs.

import { failureSources, type FailureSource } from '../../platform/failures/failure-sources.ts';
import { Type } from '../../contracts/type.ts';
import { hasCode } from '../../foundation/error.ts';
import { defineSocket, type ModuleSocket } from '../../platform/modules/module-web.ts';
import { checkGlobal } from '../../platform/modules/principal.ts';
import { route, type ApiRequest, type Route } from '../../platform/modules/route.ts';
import { isWithin, returns, routesOf, type ApiPlatform } from '../api/api-context.ts';
import { errorText } from '../http/masked-fields.ts';
import { closed, text } from '../api/admin/admin-context.ts';
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

const kinds = ['stream', 'trace', 'event', 'delivery', 'dead-letter', 'job'] as const;
const match = closed({
  kind: Type.Enum([...kinds]),
  id: Type.String(),
  title: Type.String({ description: 'The stream, type or destination.' }),
  correlationId: Type.Optional(Type.String()),
  stream: Type.Optional(Type.String()),
  revision: Type.Optional(count),
});

interface Match {
  readonly kind: (typeof kinds)[number];
  readonly id: string;
  readonly title: string;
  readonly correlationId?: string | undefined;
  readonly stream?: string | undefined;
  readonly revision?: number | undefined;
}

/** Event ids are not indexed, so only the newest events are searched. */
const eventsSearched = 2_000;

export function overviewRoutes(platform: ApiPlatform, reader: OverviewReader): readonly Route[] {
  return [
    route({
      ...get,
      path: '/admin/overview',
      summary: 'Rates, lag, failures, outbox and jobs, now and in the last 15 minutes',
      responses: { 200: returns('The overview', overview) },
      isGlobal: true,
      handle: async () => ({ body: await reader.read() }),
    }),
    route({
      ...get,
      path: '/admin/resolve/{id}',
      summary: 'Finds what an id belongs to: a stream, flow, event, delivery, dead letter or job',
      description: `Searches everything that the caller may read; events by their id only among the newest ${eventsSearched}.`,
      params: closed({ id: text(400) }),
      responses: {
        200: returns(
          'All matches; none if the id is unknown',
          closed({
            items: Type.Array(match),
            eventsSearched: Type.Integer({
              description: 'How many of the newest events were searched.',
            }),
          }),
        ),
      },
      async handle(request) {
        const { id } = request.params;
        const found = await Promise.all(finders.map((find) => find(platform, request, id)));
        return { body: { items: found.flat(), eventsSearched } };
      },
    }),
  ];
}

type Find = (platform: ApiPlatform, request: ApiRequest, id: string) => Promise<readonly Match[]>;

const finders: readonly Find[] = [
  findStream,
  findTrace,
  findEvent,
  findDelivery,
  findDeadLetter,
  findJob,
];

async function findStream(
  { engines, ownerOf }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (id.startsWith('$') || !id.includes('-')) return [];
  const [first] = await engines.store
    .readStream(id, { limit: 1, signal: request.signal })
    .toArray();
  if (first === undefined || !isWithin(request, await ownerOf(id))) return [];
  return [{ kind: 'stream', id, title: id, stream: id }];
}

async function findTrace(
  { traces }: ApiPlatform,
  { principal, signal }: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const { nodes } = await traces.get(id, { tenant: principal?.tenant, signal });
  const [first] = nodes;
  // The id of a job without a correlation id is that of its flow, too.
  const isJob = nodes.every((node) => node.kind === 'task' && node.task === id);
  if (first === undefined || isJob) return [];
  const title = first.kind === 'command' ? first.command : first.kind === 'event' ? first.type : id;
  return [{ kind: 'trace', id, title, correlationId: id }];
}

async function findEvent(
  { engines }: ApiPlatform,
  { principal, signal }: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const newest = engines.store.readAll({
    direction: 'backwards',
    limit: eventsSearched,
    filter: { tenant: principal?.tenant },
    signal,
  });
  for await (const { eventId, type, stream, revision, correlationId } of newest) {
    if (eventId !== id) continue;
    return [{ kind: 'event', id, title: type, stream, revision, correlationId }];
  }
  return [];
}

async function findDelivery(
  { engines: { outbox } }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const found = isUuid(id) ? await outbox?.find(id) : undefined;
  if (found === undefined || !isWithin(request, found.tenantId)) return [];
  const { integrationType: title, correlationId } = found;
  return [{ kind: 'delivery', id, title, correlationId }];
}

async function findDeadLetter(
  { engines }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const found = isUuid(id) ? await engines.subscriptions.deadLetters.get(id) : undefined;
  if (found === undefined || !isWithin(request, found.tenant)) return [];
  const { handler: title, correlationId, stream, revision } = found;
  return [{ kind: 'dead-letter', id, title, correlationId, stream, revision }];
}

async function findJob(
  { engines, tasks }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (!engines.has('tasks')) return [];
  try {
    const found = await (await tasks()).get(id);
    if (found === undefined || !isWithin(request, found.tenant)) return [];
    return [{ kind: 'job', id, title: found.type, correlationId: found.correlationId }];
  } catch (error) {
    // The text is not the id of a job.
    if (hasCode(error, 'TASK_UNKNOWN') || hasCode(error, 'TASK_INVALID')) return [];
    throw error;
  }
}

const uuidShape = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function isUuid(id: string): boolean {
  return uuidShape.test(id);
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
