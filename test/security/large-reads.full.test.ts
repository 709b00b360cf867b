// Every route reads large values within the memory for readers, also those of one item.

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { StatementSync, type SQLInputValue } from 'node:sqlite';
import { test } from 'node:test';
import { createPlatform, type Platform } from '../../src/platform/index.ts';
import type { ApiRequest, ReaderMemory, Route } from '../../src/platform/modules/route.ts';
import { startApi } from '../../src/server/api/start-api.ts';
import { listPage } from '../../src/server/http/list-page.ts';
import { ownRoutes } from '../../tools/scope-reference.ts';
import { largeModule, largeTypes, storeLarge, type LargeIds } from './large-data.ts';

/** The characters or bytes of a value that counts as large. */
const largeLength = 100_000;

/** One sample at a time for all callers, at most once per second. */
const sampled = 'GET /admin/overview';

type Inputs = Partial<Pick<ApiRequest, 'body' | 'params' | 'query'>>;

test('every route reads large values within the memory for readers', async () => {
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [largeModule],
    taskTypes: largeTypes,
  });
  await platform.start();
  await using api = await startApi(platform, { port: 0, metrics: async () => '' });
  const ids = await storeLarge(platform, 1);
  const large = await largeRequests(platform, ids);
  const small = smallParams(ids);
  const routes = new Map(ownRoutes(api).map((each) => [`${each.method} ${each.path}`, each]));
  using reads = watchReads();

  for (const [name, route] of routes) {
    if (name in large || route.method !== 'GET' || route.isLong === true) continue;
    if (name === sampled) continue;
    const params = small[route.path];
    assert.ok(params !== undefined || !route.path.includes('{'), `${name} has no request here`);
    const { outside } = await reads.of(route, { params });
    assert.deepEqual(outside, [], name);
  }
  for (const [name, requests] of Object.entries(large)) {
    const route = routes.get(name);
    assert.ok(route !== undefined, name);
    for (const request of requests) {
      const { within, outside } = await reads.of(route, request);
      assert.deepEqual(outside, [], `${name} ${JSON.stringify(request)}`);
      assert.ok(within > 0, `${name} ${JSON.stringify(request)} read nothing large`);
    }
  }
});

/** Items that cannot be large: names and numbers, which administrators configure. */
const smallParams = ({ stream }: LargeIds): Readonly<Record<string, object>> => ({
  '/api/v1/streams/{stream}': { stream },
  '/admin/subscriptions/{name}': { name: 'sub:shop:broken:v1' },
  '/admin/projections/{name}': { name: 'sub:shop:orders:v1' },
});

/** Requests about large items, by route; in an order in which each finds its item. */
async function largeRequests(
  platform: Platform,
  ids: LargeIds,
): Promise<Readonly<Record<string, readonly Inputs[]>>> {
  const tasks = await platform.tasks();
  const failed = await tasks.get(ids.failedJob);
  const family = { bc: 'shop', aggregate: 'order' };
  const { id: bulk } = await platform.startBulk({
    action: 'retry',
    filter: { ids: Array.from({ length: 500 }, () => 'x'.repeat(400)) },
    until: new Date(0).toISOString(),
    matched: 1,
    by: 'ada',
    reason: 'a test',
  });
  const fingerprint = failed?.error?.fingerprint ?? '';
  // The last id is unknown, so events are searched for it.
  const { flow, stream, job, letter, message, aggregate } = ids;
  const resolved = [flow, stream, job, letter, message, aggregate, fingerprint, 'unknown'];
  const failedJobs = { action: 'replay', filter: { source: 'job' } };
  const on = (params: object, body?: object): readonly Inputs[] => [{ params, body }];
  return {
    'GET /api/v1/documents/{bc}/{aggregate}': [
      { params: family },
      { params: family, query: { index: 'key', value: 'key-0' } },
    ],
    'GET /api/v1/documents/{bc}/{aggregate}/{id}': on({ ...family, id: ids.aggregate }),
    'GET /api/v1/events': on({}),
    'GET /api/v1/streams/{stream}/events': on({ stream: ids.stream }),
    'GET /api/v1/streams/{stream}/subscribe': on({ stream: ids.stream }),
    'GET /api/v1/jobs': on({}),
    'GET /api/v1/jobs/{id}': [ids.job, ids.failedJob].flatMap((id) => on({ id })),
    'GET /api/v1/jobs/{id}/result': on({ id: ids.failedJob }),
    'POST /api/v1/jobs/{id}/events': on({ id: ids.job }, { name: 'more' }),
    'GET /admin/dlq': [{}, { query: { cursor: ids.letter } }],
    'GET /admin/dlq/{id}': on({ id: ids.letter }),
    'GET /admin/parked-streams': on({}),
    'GET /admin/parked-streams/{letter}/events': on({ letter: ids.letter }),
    'GET /admin/outbox': on({}),
    'GET /admin/outbox/{id}': on({ id: ids.message }),
    'GET /admin/outbox/{id}/attempts': on({ id: ids.message }),
    'GET /admin/destinations': on({}),
    'GET /admin/sagas/{stream}': on({ stream: ids.saga }),
    'GET /admin/traces/{correlationId}': on({ correlationId: ids.flow }),
    'GET /admin/resolve/{id}': resolved.flatMap((id) => on({ id })),
    'GET /admin/failures': on({}),
    'GET /admin/failures/{fingerprint}': on({ fingerprint }),
    'GET /admin/bulk': on({}),
    'GET /admin/bulk/{id}': on({ id: bulk }),
    'GET /admin/bulk/{id}/items': on({ id: bulk }),
    'POST /admin/bulk/{id}/cancel': on({ id: bulk }),
    'POST /admin/bulk/preview': on({}, failedJobs),
    'POST /admin/bulk': on({}, { ...failedJobs, until: '2100-01-01T00:00:00Z', matched: 1 }),
    'POST /admin/dlq/{id}/note': on({ id: ids.letter }, { notes: 'seen' }),
    'POST /admin/dlq/{id}/replay': on({ id: ids.letter }),
    'POST /admin/dlq/{id}/discard': on({ id: ids.letter }, { reason: 'a test' }),
    'POST /admin/outbox/retry': on({}, { ids: [ids.message] }),
    'POST /admin/outbox/discard': on({}, { ids: [ids.message], reason: 'a test' }),
    'POST /admin/sagas/{stream}/resume': on({ stream: ids.saga }, { skip: true }),
    'POST /admin/jobs/{id}/retry': on({ id: ids.failedJob }, {}),
    'POST /admin/jobs/{id}/cancel': on({ id: ids.job }, {}),
  };
}

interface LargeReads {
  /** How many large values were read within the memory for readers. */
  readonly within: number;
  /** The callers of all other reads of large values. */
  readonly outside: readonly string[];
}

interface Reading {
  readonly isLoading: boolean;
  readonly reads: { within: number; outside: string[] };
}

/** Sees all rows that requests read: the engine in memory runs every statement in this thread. */
function watchReads(): Disposable & { of(route: Route, inputs: Inputs): Promise<LargeReads> } {
  const requests = new AsyncLocalStorage<Reading>();
  const { prototype } = StatementSync;
  const reads: Reads = prototype;
  const { all, get, iterate } = reads;
  const look = <Row>(row: Row): Row => {
    const request = requests.getStore();
    if (request === undefined || !Object.values(row ?? {}).some(isLarge)) return row;
    if (request.isLoading) request.reads.within += 1;
    else request.reads.outside.push(new Error('a large value').stack ?? '');
    return row;
  };
  Object.assign(prototype, {
    all(this: StatementSync, ...values: SQLInputValue[]) {
      return all.apply(this, values).map(look);
    },
    get(this: StatementSync, ...values: SQLInputValue[]) {
      return look(get.apply(this, values));
    },
    iterate(this: StatementSync, ...values: SQLInputValue[]) {
      return Iterator.from(iterate.apply(this, values)).map(look);
    },
  });
  return {
    async of(route, inputs) {
      const found = { within: 0, outside: [] };
      const over = new AbortController();
      await requests.run({ isLoading: false, reads: found }, async () => {
        const response = await route.handle(requestOf(inputs, over.signal, load));
        if (!('stream' in response)) return;
        for await (const part of response.stream) if (String(part).includes('data:')) break;
      });
      over.abort();
      return found;
    },
    [Symbol.dispose]: () => void Object.assign(prototype, { all, get, iterate }),
  };

  function load<Result>(work: () => Promise<Result>): Promise<Result> {
    const request = requests.getStore();
    assert.ok(request !== undefined);
    // A request that waits for memory and has some could wait for itself.
    assert.ok(!request.isLoading, 'a load within a load');
    return requests.run({ ...request, isLoading: true }, work);
  }
}

/** As functions: of several overloads, `apply` sees the last one only. */
interface Reads {
  readonly all: Read<object[]>;
  readonly get: Read<object | undefined>;
  readonly iterate: Read<Iterator<object>>;
}

type Read<Result> = (...values: SQLInputValue[]) => Result;

function isLarge(value: unknown): boolean {
  return (typeof value === 'string' || value instanceof Uint8Array) && value.length >= largeLength;
}

function requestOf(inputs: Inputs, signal: AbortSignal, load: ReaderMemory['load']): ApiRequest {
  return {
    params: {},
    query: {},
    body: undefined,
    headers: { 'x-tenant-id': 'core' },
    principal: { kind: 'token', name: 'ada', scopes: ['admin'] },
    signal,
    requestId: 'r1',
    address: '127.0.0.1',
    memory: { load, page: (bound, read) => load(() => listPage(bound, read)), hold() {} },
    ...inputs,
  };
}
