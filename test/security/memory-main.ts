// A server with a small heap for the memory tests: the API on the given engines, and the KurrentDB protocol in memory.

import { createPlatform, type EngineUrls } from '../../src/platform/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { largeModule, largeTypes, storeLarge } from './large-data.ts';

export interface MemoryInput {
  readonly engines: EngineUrls;
}

export interface MemoryServer {
  readonly kind: 'serving';
  readonly url: string;
  readonly kurrentPort: number;
  readonly tokens: Readonly<Record<'all' | 'append' | 'other' | 'read' | 'work', string>>;
}

/** Asks the child to publish large messages to its bus, and to fetch and read as many as it gets. */
export interface BusOrder {
  readonly messages: number;
}

/** Asks the child to store as many large items of each kind. */
export interface ListOrder {
  readonly listed: number;
}

export interface ListsFilled {
  readonly kind: 'lists';
  /** The paths of the filled lists. */
  readonly paths: readonly string[];
  /** The paths of one large item of each kind. */
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
  readonly heapMax: number;
  /** The memory of the process outside of its heap. V8 may let the heap grow up to its limit. */
  readonly outsideMax: number;
}

const { engines } = childInput() as MemoryInput;
const platform = await createPlatform({
  engines,
  modules: [largeModule],
  taskTypes: largeTypes,
});
await platform.start();
// On a busy machine, the limits of time would end the calls before those of memory.
const callMsMax = 600_000;
const api = await startApi(platform, { port: 0, limits: { answerMsMax: callMsMax } });
const kurrent = await startKurrentServer(openMemory(kurrentStoreOptions).store, {
  port: 0,
  limits: { openAppendIdleMsMax: callMsMax, keepaliveTimeoutMs: callMsMax },
});
const tokenOf = async (
  scope: 'append' | 'read' | 'work',
  { name = scope, tenant }: { readonly name?: string; readonly tenant?: string } = {},
) => {
  return (await platform.tokens.create({ name, scopes: [scope], tenant })).secret;
};

let heapMax = 0;
let outsideMax = 0;
const measure = (): void => {
  const { rss, heapTotal, heapUsed } = process.memoryUsage();
  heapMax = Math.max(heapMax, heapUsed);
  outsideMax = Math.max(outsideMax, rss - heapTotal);
};
setInterval(measure, 20).unref();
process.on('message', (order: BusOrder | ListOrder | 'memory') => {
  if (order !== 'memory') {
    const done = 'listed' in order ? fillLists(order.listed) : useBus(order.messages);
    void done.then(tellParent);
    return;
  }
  measure();
  tellParent({ kind: 'memory', heapMax, outsideMax } satisfies MemoryUse);
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
  const ids = await storeLarge(platform, count);
  const documents = '/api/v1/documents/shop/order';
  const outbox = platform.engines.outbox === undefined ? [] : ['/admin/outbox'];
  return {
    kind: 'lists',
    paths: ['/admin/dlq', '/admin/sagas', '/api/v1/jobs', documents, ...outbox],
    single: [
      `${documents}/${ids.aggregate}`,
      `/api/v1/jobs/${ids.job}`,
      `/api/v1/jobs/${ids.failedJob}`,
      `/admin/dlq/${ids.letter}`,
      `/admin/sagas/${ids.saga}`,
      ...outbox.map((path) => `${path}/${ids.message}`),
    ],
  };
}

tellParent({
  kind: 'serving',
  url: api.url,
  kurrentPort: kurrent.port,
  tokens: {
    all: await tokenOf('read', { name: 'all' }),
    append: await tokenOf('append', { tenant: 'core' }),
    read: await tokenOf('read', { tenant: 'core' }),
    other: await tokenOf('read', { name: 'other', tenant: 'core' }),
    work: await tokenOf('work'),
  },
} satisfies MemoryServer);
