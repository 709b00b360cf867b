// Finds what an id belongs to, so that any id can be pasted into the console.

import { Type } from '../../contracts/type.ts';
import { readFailures, type FailureFilter } from '../../platform/failures/failures.ts';
import { mayCall } from '../../platform/modules/principal.ts';
import { route, type ApiRequest, type Route } from '../../platform/modules/route.ts';
import { jobWithId } from '../../platform/traced-work.ts';
import { sagaAt } from '../../reactors/saga-admin.ts';
import { isWithin, returns, routesOf, type ApiPlatform } from '../api/api-context.ts';
import { closed, text } from '../api/admin/admin-context.ts';
import type { TracedEvent } from '../../traces/trace-node.ts';

const { get } = routesOf('console', 'read');

const kinds = [
  'stream',
  'trace',
  'event',
  'delivery',
  'dead-letter',
  'bus-dead-letter',
  'failure',
  'saga',
  'subscription',
  'job',
  'token',
] as const;
const optional = Type.Optional(Type.String());
const match = closed({
  kind: Type.Enum([...kinds]),
  id: Type.String(),
  title: Type.String({ description: 'The stream, type, destination, place or name.' }),
  correlationId: optional,
  stream: optional,
  revision: Type.Optional(Type.Integer()),
  fingerprint: Type.Optional(Type.String({ description: 'The cause of a failure.' })),
});

interface Match {
  readonly kind: (typeof kinds)[number];
  readonly id: string;
  readonly title: string;
  readonly correlationId?: string | undefined;
  readonly stream?: string | undefined;
  readonly revision?: number | undefined;
  readonly fingerprint?: string | undefined;
}

/** No index has the ids of all events and the keys of all sagas, so the newest events and the first sagas are read. */
const searchLimits = { events: 20_000, timeMs: 2_000, sagas: 2_000, matches: 20 } as const;
const pageSize = 500;

export function resolveRoutes(platform: ApiPlatform): readonly Route[] {
  return [
    route({
      ...get,
      path: '/admin/resolve/{id}',
      summary:
        'Finds what an id belongs to: a stream, flow, event, delivery, dead letter, cause of failures, saga, subscription, job or token',
      description: `Searches everything that the caller may read. Sagas are found by their key among the first ${searchLimits.sagas}. If nothing else has the id, the newest ${searchLimits.events} events are read, for at most ${searchLimits.timeMs / 1_000} s.`,
      params: closed({ id: text(400) }),
      responses: {
        200: returns(
          'All matches; none if the id is unknown',
          closed({
            items: Type.Array(match),
            eventsSearched: Type.Integer({
              description: 'How many of the newest events were read.',
            }),
            sagasSearched: Type.Integer({ description: 'How many sagas were compared.' }),
          }),
        ),
      },
      async handle(request) {
        const { id } = request.params;
        const [sagas, ...found] = await Promise.all([
          findSagas(platform, request, id),
          ...finders.map((find) => find(platform, request, id)),
        ]);
        const items = [...found.flat(), ...sagas.items];
        const events =
          items.length > 0
            ? { items: [], looked: 0 }
            : await request.memory.load(() => searchEvents(platform, request, id));
        return {
          body: {
            items: [...items, ...events.items],
            eventsSearched: events.looked,
            sagasSearched: sagas.looked,
          },
        };
      },
    }),
  ];
}

type Find = (platform: ApiPlatform, request: ApiRequest, id: string) => Promise<readonly Match[]>;

interface Searched {
  readonly items: readonly Match[];
  readonly looked: number;
}

const finders: readonly Find[] = [
  findStream,
  findFlow,
  findDelivery,
  findDeadLetters,
  findBusLetter,
  findCause,
  findSubscription,
  findJob,
  findToken,
];

async function findStream(
  { engines, ownerOf }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (id.startsWith('$') || !id.includes('-')) return [];
  const { memory, signal } = request;
  return memory.load(async () => {
    const [first] = await engines.store.readStream(id, { limit: 1, signal }).toArray();
    if (first === undefined || !isWithin(request, await ownerOf(id))) return [];
    return [{ kind: 'stream', id, title: id, stream: id }];
  });
}

/** A flow, and the event that started it if the flow has its id. */
async function findFlow(
  { traces }: ApiPlatform,
  { principal, signal, memory }: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const { nodes } = await traces.get(id, {
    tenant: principal?.tenant,
    signal,
    aroundLoad: memory.load,
  });
  const [first] = nodes;
  // The id of a job without a correlation id is that of its flow, too.
  const isJob = nodes.every((node) => node.kind === 'task' && node.task === id);
  if (first === undefined || isJob) return [];
  const title = first.kind === 'command' ? first.command : first.kind === 'event' ? first.type : id;
  const started = nodes.find((node) => node.kind === 'event' && node.eventId === id);
  const events = started?.kind === 'event' ? [eventMatch(started, id)] : [];
  return [{ kind: 'trace', id, title, correlationId: id }, ...events];
}

function eventMatch(
  {
    eventId,
    type,
    stream,
    revision,
  }: Pick<TracedEvent, 'eventId' | 'revision' | 'stream' | 'type'>,
  correlationId: string | undefined,
): Match {
  return { kind: 'event', id: eventId, title: type, stream, revision, correlationId };
}

async function searchEvents(
  { clock, engines }: ApiPlatform,
  { principal, signal }: ApiRequest,
  id: string,
): Promise<Searched> {
  const endMs = clock.now() + searchLimits.timeMs;
  const newest = engines.store.readAll({
    direction: 'backwards',
    limit: searchLimits.events,
    pageSize,
    filter: { tenant: principal?.tenant },
    signal,
  });
  let looked = 0;
  for await (const page of newest.pages()) {
    const found = page.find(({ eventId }) => eventId === id);
    looked += page.length;
    if (found !== undefined) return { items: [eventMatch(found, found.correlationId)], looked };
    if (clock.now() >= endMs) break;
  }
  return { items: [], looked };
}

async function findDelivery(
  { engines: { outbox } }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const found = isUuid(id) ? await request.memory.load(async () => outbox?.find(id)) : undefined;
  if (found === undefined || !isWithin(request, found.tenantId)) return [];
  const { integrationType: title, correlationId } = found;
  return [{ kind: 'delivery', id, title, correlationId }];
}

/** A dead letter, or an event that is one, at any age. */
async function findDeadLetters(
  { engines }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const { deadLetters } = engines.subscriptions;
  const found = isUuid(id) ? await request.memory.load(() => deadLetters.get(id)) : undefined;
  if (found !== undefined && isWithin(request, found.tenant)) {
    const { handler: title, correlationId, stream, revision } = found;
    return [{ kind: 'dead-letter', id, title, correlationId, stream, revision }];
  }
  const tenant = request.principal?.tenant;
  const bound = { limit: 1, withoutPayloads: true };
  const [letter] = await deadLetters.list({ eventIds: [id], tenant }, bound);
  // The event that started a flow has the id of the flow, which finds the event as well.
  if (letter === undefined || letter.correlationId === id) return [];
  return [eventMatch({ ...letter, type: letter.eventType }, letter.correlationId)];
}

/** The id of a dead letter of the bus is its group and its sequence, as in the list of failures. */
async function findBusLetter(
  platform: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  const at = id.indexOf('/');
  if (at < 1) return [];
  const filter = { source: 'bus', where: id.slice(0, at), ids: [id] } as const;
  return findFailure(platform, request, 'bus-dead-letter', filter);
}

async function findCause(
  platform: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (!/^[0-9a-f]{12}$/.test(id)) return [];
  return findFailure(platform, request, 'failure', { fingerprint: id });
}

async function findFailure(
  platform: ApiPlatform,
  { principal, memory, signal }: ApiRequest,
  kind: Match['kind'],
  filter: FailureFilter,
): Promise<readonly Match[]> {
  const { items } = await memory.load(() =>
    readFailures(platform, { ...filter, tenant: principal?.tenant }, signal),
  );
  const [first] = items;
  if (first === undefined) return [];
  const { fingerprint } = first.cause;
  const id = kind === 'failure' ? fingerprint : first.id;
  return [{ kind, id, title: first.where, fingerprint }];
}

/** Sagas with this key, also of several tenants and kinds. */
async function findSagas(
  { engines }: ApiPlatform,
  { principal, memory }: ApiRequest,
  id: string,
): Promise<Searched> {
  const items: Match[] = [];
  let looked = 0;
  for (let after: string | undefined; looked < searchLimits.sagas;) {
    const page = await engines.sagas.list({ tenant: principal?.tenant, limit: pageSize, after });
    looked += page.length;
    for (const { key, saga, stream } of page) {
      if (key !== id || items.length === searchLimits.matches) continue;
      const { correlationId } = await memory.load(async () => {
        const { sagas, address } = await sagaAt(engines, stream);
        return sagas.get(address);
      });
      items.push({ kind: 'saga', id: stream, title: saga, stream, correlationId });
    }
    if (page.length < pageSize) break;
    after = page.at(-1)?.stream;
  }
  return { items, looked };
}

/** A subscription by its name, for those who may list subscriptions. */
async function findSubscription(
  { engines }: ApiPlatform,
  { principal }: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (principal === undefined || !mayCall({ access: 'read', isGlobal: true }, principal)) return [];
  const found = await engines.subscriptions.checkpoints.get(id);
  return found === undefined ? [] : [{ kind: 'subscription', id, title: id }];
}

async function findJob(
  { engines, tasks }: ApiPlatform,
  request: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (!engines.has('tasks')) return [];
  const all = await tasks();
  const found = await request.memory.load(() => jobWithId(all, id));
  if (found === undefined || !isWithin(request, found.tenant)) return [];
  return [{ kind: 'job', id, title: found.type, correlationId: found.correlationId }];
}

/** Tokens by id or name, for those who may list them. */
async function findToken(
  { tokens }: ApiPlatform,
  { principal }: ApiRequest,
  id: string,
): Promise<readonly Match[]> {
  if (principal === undefined || !mayCall({ access: 'admin', isGlobal: true }, principal))
    return [];
  const found = (await tokens.list()).find((token) => token.id === id || token.name === id);
  return found === undefined ? [] : [{ kind: 'token', id: found.id, title: found.name }];
}

function isUuid(id: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
}
