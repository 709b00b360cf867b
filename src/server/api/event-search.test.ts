// Searching events: filters, bounds, cursors and access.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEnvelope } from '../../contracts/index.ts';
import { openApi, type Api } from '../../testing/support/server/api-rig.ts';
import { parseCondition, searchEvents } from './event-search.ts';

interface Found {
  readonly items: readonly { readonly type: string; readonly payload: { readonly n: number } }[];
  readonly cursor?: string;
  readonly searched: {
    readonly events: number;
    readonly back?: string;
    readonly by: string;
    readonly complete: boolean;
  };
}

async function append(
  api: Api,
  payloads: readonly object[],
  { tenant = 'core', id = '1', correlationId = 'flow-1' } = {},
): Promise<void> {
  const aggregate = { bc: 'shop', type: 'order', id };
  const events = payloads.map((payload) =>
    createEnvelope({ type: 'order.placed.v1', payload }, { tenant, aggregate, correlationId }),
  );
  await api.platform.engines.store.append(`shop.order.v1-${tenant}-${id}`, events);
}

async function searching(api: Api, tenant?: string) {
  const token = await api.token('read', tenant);
  return async (query: string): Promise<Found> => {
    const response = await api.ask(`/api/v1/events/search?${query}`, token);
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()) as Found;
  };
}

const numbers = ({ items }: Found): readonly number[] => items.map(({ payload }) => payload.n);

test('finds events by a payload value, newest first, and says how far it looked', async () => {
  await using api = await openApi();
  await append(
    api,
    Array.from({ length: 250 }, (_, n) => ({ n, customer: { id: `c-${n % 50}` } })),
  );
  const find = await searching(api);
  const found = await find('payload=customer.id%3Dc-7&limit=3');
  assert.deepEqual(numbers(found), [207, 157, 107]);
  assert.deepEqual([found.searched.events, found.searched.by], [143, 'events']);
  assert.ok(found.searched.back !== undefined);
  const rest = await find(`payload=customer.id%3Dc-7&limit=3&cursor=${found.cursor ?? ''}`);
  assert.deepEqual([numbers(rest), rest.cursor], [[57, 7], undefined]);
  const both = await find('payload=customer.id%3Dc-7&payload=n%3D57');
  assert.deepEqual(numbers(both), [57]);
});

test('one request ends at its limit of events or of time, and its cursor continues', async () => {
  await using api = await openApi();
  await append(api, [{ n: -1, rare: true }, ...Array.from({ length: 2_500 }, (_, n) => ({ n }))]);
  const { signal } = new AbortController();
  for (const limits of [
    { eventsMax: 1_001, timeMs: 60_000 },
    { eventsMax: 1_000_000, timeMs: 0 },
  ]) {
    const requests: Found[] = [];
    let cursor: string | undefined;
    do {
      const query = { payload: ['rare=true'], cursor };
      const request = { query, signal, headers: {}, principal: undefined };
      const json = await searchEvents(api.platform, request, (event) => event, limits);
      const found = JSON.parse(json) as Found;
      requests.push(found);
      cursor = found.cursor;
    } while (cursor !== undefined);
    assert.deepEqual(requests.flatMap(numbers), [-1]);
    assert.ok(requests.length >= 3);
    assert.ok(requests.every(({ searched }) => searched.events < 1_002));
    assert.equal(
      requests.reduce((sum, { searched }) => sum + searched.events, 0),
      2_501,
    );
  }
});

test('a search ends when its caller leaves', async () => {
  await using api = await openApi();
  await append(api, [{ n: 1 }]);
  const signal = AbortSignal.abort();
  const request = { query: {}, signal, headers: {}, principal: undefined };
  await assert.rejects(
    searchEvents(api.platform, request, (event) => event),
    { code: 'ABORTED' },
  );
});

test('finds the events of a flow by the index of traces, and of a time and a stream', async () => {
  await using api = await openApi();
  await append(api, [{ n: 1 }, { n: 2 }], { correlationId: 'flow/2' });
  await append(api, [{ n: 3 }], { id: '2' });
  const find = await searching(api);
  const flow = await find('correlationId=flow%2F2');
  assert.deepEqual(
    [numbers(flow), flow.searched.by, flow.searched.events],
    [[2, 1], 'trace-index', 2],
  );
  assert.deepEqual(numbers(await find('correlationId=flow%2F2&payload=n%3D1')), [1]);
  const stream = await find('stream=shop.order.v1-core-1&limit=1');
  assert.deepEqual([numbers(stream), stream.searched.by], [[2], 'stream']);
  const rest = await find(`stream=shop.order.v1-core-1&cursor=${stream.cursor ?? ''}`);
  assert.deepEqual([numbers(rest), rest.cursor], [[1], undefined]);
  const past = '2001-01-01T00:00:00Z';
  assert.deepEqual(numbers(await find(`from=${past}`)), [3, 2, 1]);
  const before = await find(`until=${past}`);
  assert.deepEqual([before.items, before.searched.events], [[], 0]);
  assert.deepEqual(numbers(await find('from=2999-01-01T00:00:00Z')), []);
  assert.deepEqual(numbers(await find('category=shop.order.v1&types=order.paid.v1')), []);
});

test('credentials of a tenant find the events of their tenant only', async () => {
  await using api = await openApi();
  await append(api, [{ n: 1 }]);
  await append(api, [{ n: 2 }], { tenant: 'demo' });
  const find = await searching(api, 'demo');
  for (const query of [
    '',
    'correlationId=flow-1',
    'payload=n%3D1&payload=n%3D2',
    'payload=n%3D2',
  ]) {
    const { items, searched } = await find(query);
    assert.ok(
      items.every(({ payload }) => payload.n === 2),
      query,
    );
    assert.equal(searched.events, 1, query);
  }
  const token = await api.token('read', 'demo');
  const path = '/api/v1/events/search';
  assert.equal((await api.ask(`${path}?tenant=core`, token)).status, 403);
  assert.equal((await api.ask(`${path}?stream=shop.order.v1-core-1`, token)).status, 403);
});

test('a bad filter is a problem that names its field', async () => {
  await using api = await openApi();
  const token = await api.token('read');
  for (const [query, field] of [
    ['from=yesterday', 'from'],
    ['until=13:00', 'until'],
    ['payload=amount', 'payload'],
    ['payload=%3D5', 'payload'],
    ['stream=shop.order.v1-core-1&cursor=x', 'cursor'],
  ] as const) {
    const response = await api.ask(`/api/v1/events/search?${query}`, token);
    const problem = (await response.json()) as { readonly details?: { readonly field?: string } };
    assert.deepEqual([response.status, problem.details?.field], [400, field], query);
  }
});

test('a payload value is found in objects and lists by its exact text', () => {
  const payload = {
    amount: 100,
    paid: true,
    note: null,
    customer: { id: 'c-7' },
    lines: [{ sku: 'a' }, { sku: 'b' }],
    tags: ['x', 'y'],
    formula: 'a=b',
  };
  const cases = [
    ['amount=100', true],
    ['amount=10', false],
    ['amount = 100', true],
    ['paid=true', true],
    ['note=null', true],
    ['customer.id=c-7', true],
    ['customer=c-7', false],
    ['lines.sku=b', true],
    ['lines.1.sku=a', false],
    ['lines.1.sku=b', true],
    ['tags=y', true],
    ['formula=a=b', true],
    ['missing.path=1', false],
    ['constructor.name=Object', false],
  ] as const;
  for (const [text, holds] of cases) assert.equal(parseCondition(text)(payload), holds, text);
  assert.equal(parseCondition('a.b=1')('text'), false);
});
