// A server with a small heap for the memory tests: the API on the given engines, and the KurrentDB protocol in memory.

import { createPlatform, defineModule, type EngineUrls } from '../../src/platform/index.ts';
import { projection, readModel } from '../../src/projections/index.ts';
import { subscription, Terminal } from '../../src/subscriptions/index.ts';
import { taskType } from '../../src/tasks/index.ts';
import { newEvent, newStream } from '../../src/testing/conformance/store/fixture.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface MemoryInput {
  readonly engines: EngineUrls;
}

export interface MemoryServer {
  readonly kind: 'serving';
  readonly url: string;
  readonly kurrentPort: number;
  readonly tokens: Readonly<Record<'append' | 'other' | 'read' | 'work', string>>;
}

/** Asks the child to publish large messages to its bus, and to fetch and read as many as it gets. */
export interface BusOrder {
  readonly messages: number;
}

/** Asks the child to store as many large messages of the outbox, jobs and dead letters. */
export interface ListOrder {
  readonly listed: number;
}

export interface ListsFilled {
  readonly kind: 'lists';
  /** The paths of the filled lists. */
  readonly paths: readonly string[];
  /** The paths of large items: a document, a job and its result, and a dead letter. */
  readonly single: readonly string[];
}

export interface BusUse {
  readonly kind: 'bus';
  readonly fetched: number;
  readonly read: number;
}

/** The highest values since the start. */
export interface MemoryUse {
  readonly kind: 'memory';
  readonly rssMax: number;
  readonly heapMax: number;
}

const { engines } = childInput() as MemoryInput;
const broken = subscription({
  name: 'sub:shop:broken:v1',
  filter: { types: ['order.broken.v1'] },
  handler: () => {
    // The largest error that is stored.
    throw new Terminal(`broken ${'x'.repeat(5_000)}`);
  },
});
/** A document as large as its event. */
const orders = projection({
  name: 'sub:shop:orders:v1',
  readModel: readModel<{ readonly text: string }>({
    bc: 'shop',
    aggregate: 'order',
    version: 1,
    sets: { open: () => true },
    ranges: { at: () => 1 },
  }),
  on: {
    'order.broken.v1': (
      _before: unknown,
      { payload }: { readonly payload: { readonly text: string } },
    ) => ({ text: payload.text }),
  },
});
const platform = await createPlatform({
  engines,
  modules: [defineModule({ name: 'shop', subscriptions: [broken], projections: [orders] })],
  taskTypes: [taskType('report-gen', { stepTimeoutMs: 300_000 })],
});
await platform.start();
// On a busy machine, the limits of time would end the calls before those of memory.
const callMsMax = 600_000;
const api = await startApi(platform, { port: 0, limits: { answerMsMax: callMsMax } });
const kurrent = await startKurrentServer(openMemory(kurrentStoreOptions).store, {
  port: 0,
  limits: { openAppendIdleMsMax: callMsMax, keepaliveTimeoutMs: callMsMax },
});
const tokenOf = async (scope: 'append' | 'read' | 'work', name: string = scope) => {
  // Only workers see all tenants.
  const tenant = scope === 'work' ? undefined : 'core';
  return (await platform.tokens.create({ name, scopes: [scope], tenant })).secret;
};

let rssMax = 0;
let heapMax = 0;
const measure = (): void => {
  const { rss, heapUsed } = process.memoryUsage();
  rssMax = Math.max(rssMax, rss);
  heapMax = Math.max(heapMax, heapUsed);
};
setInterval(measure, 20).unref();
process.on('message', (order: BusOrder | ListOrder | 'memory') => {
  if (order !== 'memory') {
    const done = 'listed' in order ? fillLists(order.listed) : useBus(order.messages);
    void done.then(tellParent);
    return;
  }
  measure();
  tellParent({ kind: 'memory', rssMax, heapMax } satisfies MemoryUse);
});

async function useBus(messages: number): Promise<BusUse> {
  const bus = await platform.engines.bus();
  const subject = 'shop.orders.placed';
  const group = await bus.group({ group: 'readers', subject });
  const text = 'x'.repeat(900_000);
  for (let at = 0; at < messages; at += 1) await bus.publish({ subject, payload: { at, text } });
  const fetched = await group.fetch({ limit: 1_000, waitMs: 0 });
  let read = 0;
  for await (const message of bus.read(subject)) read += message.subject === subject ? 1 : 0;
  measure();
  return { kind: 'bus', fetched: fetched.length, read };
}

async function fillLists(count: number): Promise<ListsFilled> {
  const { store, outbox, subscriptions } = platform.engines;
  const tasks = await platform.tasks();
  const tenant = 'core';
  // In memory 2 bytes for each character, because of one of them.
  const textOf = (chars: number): string => `${'x'.repeat(chars)}\u0394`;
  const payload = { text: textOf(900_000) };
  // As large as a job may be.
  const text = 'x'.repeat(250_000);
  const large = await tasks.enqueue({
    type: 'report-gen',
    payload: { text },
    tenant,
    delayMs: 86_400_000,
  });
  for (let at = 0; at < 6; at += 1)
    await tasks.sendEvent(large.id, { name: 'part', payload: { text } });
  for (let at = 0; at < count; at += 1) {
    const stream = newStream('shop.order.v1', tenant);
    const aggregate = { bc: 'shop', type: 'order', id: stream.split('-')[2] ?? '' };
    await store.append(stream, [newEvent({ type: 'order.broken.v1', aggregate, payload })]);
    await tasks.enqueue({ type: 'report-gen', payload: { text: textOf(250_000) }, tenant });
    await outbox?.enqueue({
      sourceStreamId: stream,
      sourceEventId: `event-${at}`,
      integrationType: 'webhook:partner',
      eventType: 'order.placed.v1',
      payload,
      tenantId: tenant,
      dueAt: new Date('2100-01-01'),
    });
  }
  const { deadLetters } = subscriptions;
  await eventually(async () => (await deadLetters.count({ tenant, status: 'pending' })) >= count);
  const documents = platform.documents({ bc: 'shop', aggregate: 'order' });
  await eventually(async () => (await documents.count(tenant, 'at')) >= count);
  const documentsPath = '/api/v1/documents/shop/order';
  const paths = [
    '/admin/dlq',
    '/api/v1/jobs',
    documentsPath,
    ...(outbox === undefined ? [] : ['/admin/outbox']),
  ];
  const [letter] = await deadLetters.list({ tenant }, { limit: 1 });
  const single = [
    `${documentsPath}/${letter?.aggregateId}`,
    `/api/v1/jobs/${large.id}`,
    `/admin/dlq/${letter?.id}`,
  ];
  return { kind: 'lists', paths, single };
}

tellParent({
  kind: 'serving',
  url: api.url,
  kurrentPort: kurrent.port,
  tokens: {
    append: await tokenOf('append'),
    read: await tokenOf('read'),
    other: await tokenOf('read', 'other'),
    work: await tokenOf('work'),
  },
} satisfies MemoryServer);
