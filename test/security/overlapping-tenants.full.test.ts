// Tenants whose names overlap, created in any order and in any way: no identity reads or writes anything of another
// tenant, over any protocol.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { propertyRuns } from '../../src/testing/property-runs.ts';
import {
  throwawayCertificate,
  type Certificate,
} from '../../src/testing/support/throwaway-certificate.ts';
import { ownRoutes } from '../../tools/scope-reference.ts';
import { createWorkspace } from '../store/rig.ts';
import { openTenantRig, type Identity, type TenantRig } from './tenant-rig.ts';

let tls: Certificate;
before(() => {
  tls = throwawayCertificate();
});
after(() => tls[Symbol.dispose]());

const tenants = ['demo', 'demo-za', 'demo-za-x'] as const;
const streams = [...tenants, 'demo-za-x-y'].map((start) => `shop.order.v1-${start}-1`);
const ways = ['token', 'jwt', 'given', 'header'] as const;

/** Creates a tenant in one of the ways, and returns identities of it, also if it was refused. */
async function create(
  rig: TenantRig,
  tenant: string,
  way: (typeof ways)[number],
): Promise<readonly Identity[]> {
  const { api } = rig;
  const jwt = await rig.jwt(tenant);
  if (way === 'jwt') return [jwt];
  if (way === 'token') return [(await rig.token(tenant)) ?? jwt];
  if (way === 'given') {
    await api.platform.tokens.addTenant(tenant).catch(() => undefined);
    return [jwt];
  }
  // An administrator of all tenants names it; the id makes the stream look like one of a longer tenant.
  const admin = await api.token('admin');
  for (const id of ['1', 'za-1', 'za-x-1']) {
    await deposit(rig, { tenant, bearer: admin }, id);
  }
  return [];
}

const deposit = async ({ api }: TenantRig, { tenant, bearer }: Identity, id: string) => {
  const amount = tenants.findIndex((each) => each === tenant) + 1;
  const body = { id, payload: { amount } };
  const headers = { 'x-tenant-id': tenant };
  const answer = await api.post('/api/v1/commands/account.deposit', body, bearer, headers);
  assert.ok([200, 400, 403].includes(answer.status), await answer.text());
};

async function useEverything(rig: TenantRig, identity: Identity): Promise<void> {
  for (const write of Object.values(rig.writers)) {
    for (const stream of streams) await write(identity, stream);
  }
  for (const id of ['1', 'za-1', 'x-1', 'za-x-1']) await deposit(rig, identity, id);
}

async function checkReads(rig: TenantRig, identity: Identity): Promise<void> {
  const accounts = [...tenants].map((start) => `banking.account.v1-${start}-1`);
  for (const [name, read] of Object.entries(rig.readers)) {
    for (const stream of [...streams, ...accounts]) {
      for (const event of (await read(identity, stream)) ?? []) {
        // Over gRPC the data of an order has its tenant, and that of an account has none.
        if (event.tenant !== undefined || name !== 'grpc') {
          assert.equal(event.tenant, identity.tenant, `${name} ${stream}`);
        }
      }
    }
  }
  const everything = (await rig.overSocket(identity, {})) ?? [];
  assert.ok(everything.every(({ tenant }) => tenant === identity.tenant));
}

/** Each stream has events of one tenant, and each account of a tenant has the deposits of that tenant. */
async function checkStore({ api }: TenantRig): Promise<void> {
  const owners = new Map<string, string>();
  const balances = new Map<string, number>();
  const { store } = api.platform.engines;
  for await (const event of store.readAll()) {
    const { stream, tenant, aggregate } = event;
    const payload = event.payload as { readonly amount?: number; readonly tenant?: string };
    assert.equal(owners.getOrInsert(stream, tenant), tenant, stream);
    assert.equal(payload.tenant ?? tenant, tenant, stream);
    if (event.type !== 'account.deposited.v1') continue;
    assert.equal(payload.amount, tenants.findIndex((each) => each === tenant) + 1);
    const key = `${tenant} ${aggregate.id}`;
    balances.set(key, (balances.get(key) ?? 0) + (payload.amount ?? 0));
  }
  const admin = await api.token('admin');
  const waitFor = await store.head();
  for (const tenant of tenants) {
    const path = `/api/v1/documents/banking/account?waitFor=${waitFor}`;
    const answer = await api.ask(path, admin, { headers: { 'x-tenant-id': tenant } });
    const { items } = (await answer.json()) as {
      items: { readonly id: string; readonly document: { readonly balance: number } }[];
    };
    for (const { id, document } of items) {
      assert.equal(document.balance, balances.get(`${tenant} ${id}`));
    }
  }
}

test('whatever the order in which overlapping tenants are created, none reads or writes data of another', async () => {
  let writes = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([...tenants], { minLength: 3 }),
      fc.tuple(fc.constantFrom(...ways), fc.constantFrom(...ways), fc.constantFrom(...ways)),
      async (order, kinds) => {
        await using rig = await openTenantRig(tls);
        const identities: Identity[] = [];
        for (const [index, tenant] of order.entries()) {
          identities.push(...(await create(rig, tenant, kinds[index] ?? 'token')));
          for (const identity of identities) await useEverything(rig, identity);
        }
        for (const identity of identities) await checkReads(rig, identity);
        await checkStore(rig);
        writes += (await rig.api.platform.engines.store.readAll().toArray()).length;
      },
    ),
    {
      numRuns: 3 + propertyRuns(5),
      examples: [
        [
          ['demo', 'demo-za', 'demo-za-x'],
          ['jwt', 'token', 'token'],
        ],
        [
          ['demo-za', 'demo', 'demo-za-x'],
          ['given', 'token', 'jwt'],
        ],
        [
          ['demo', 'demo-za', 'demo-za-x'],
          ['header', 'token', 'jwt'],
        ],
      ],
    },
  );
  assert.ok(writes > 0);
});

test('no route reads subjects and streams of the bus of a tenant whose name starts with that of the caller', async () => {
  await using workspace = await createWorkspace();
  // The memory engine publishes no signals of jobs.
  const store = `sqlite:${join(workspace.folder, 'events.db')}`;
  await using rig = await openTenantRig(tls, { store });
  const { api } = rig;
  const marker = 'secret-of-demo-za';
  // A tenant that only administrators name: a tenant of the directory excludes `demo`.
  const admin = await api.token('admin');
  const other = { 'x-tenant-id': 'demo-za' };
  const job = { type: 'report-gen', payload: { marker } };
  assert.equal((await api.post('/api/v1/jobs', job, admin, other)).status, 201);
  // As modules publish them.
  const bus = await api.platform.engines.bus();
  const subjects = [
    'gbe.notify.customer.cust_1.info',
    'gbe.notify.customer.za-cust_1.info',
    'gbe.notify.topic.demo-za_ops',
    'shop.orders.placed',
  ];
  await bus.group({ group: 'readers', subject: 'shop.orders.placed' });
  for (const subject of subjects) {
    await bus.publish({ subject, payload: { title: marker, message: marker }, tenant: 'demo-za' });
  }
  const own = (await rig.token('demo')) ?? assert.fail();
  const names = [...subjects, 'readers', 'demo-za_ops', 'cust_1', 'za-cust_1'];
  const routes = ownRoutes(api.server).filter(({ method }) => method === 'GET');
  let requests = 0;
  for (const { path, isLong } of routes) {
    // Live streams do not end; their tenants are in the other tests, and that of jobs is below.
    if (isLong === true) continue;
    for (const name of path.includes('{') ? names : ['']) {
      const answer = await api.ask(path.replaceAll(/\{\w+\}/g, name), own.bearer);
      assert.doesNotMatch(await answer.text(), new RegExp(marker), `${path} ${name}`);
      requests += 1;
    }
  }
  assert.ok(requests > 150, `${requests} requests`);
  for (const path of ['/demo-za_ops/json?poll=1', '/demo-za_ops/sse?poll=1']) {
    const headers = { authorization: `Bearer ${own.bearer}` };
    assert.equal((await fetch(`${rig.topics}${path}`, { headers })).status, 401, path);
  }

  const tail = await api.ask('/api/v1/jobs/tail?type=report-gen', own.bearer);
  assert.equal(tail.status, 200);
  for (const [bearer, headers] of [
    [admin, other],
    [own.bearer, {}],
  ] as const) {
    const created = await api.post('/api/v1/jobs', job, bearer, headers);
    const { id } = (await created.json()) as { readonly id: string };
    const reason = bearer === own.bearer ? 'own' : marker;
    const ended = await api.post(`/admin/jobs/${id}/cancel`, { reason }, bearer);
    assert.equal(ended.status, 200, await ended.clone().text());
    if (bearer !== own.bearer) continue;
    let seen = '';
    for await (const chunk of tail.body ?? assert.fail()) {
      seen += Buffer.from(chunk).toString();
      if (seen.includes(id)) break;
    }
    assert.doesNotMatch(seen, new RegExp(marker));
    assert.equal(seen.match(/event: terminal/g)?.length, 1, seen);
  }
});
