// Every route that returns a list reads it by small parts, within the memory for readers, or is classified with a reason.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acquireShard, newLetter } from '../../src/testing/conformance/subscriptions/fixture.ts';
import type { ApiRequest, Route } from '../../src/platform/modules/route.ts';
import { ownRoutes } from '../../tools/scope-reference.ts';
import { openAllModules, type SecuredApi } from './api-of-all-modules.ts';

const configured = 'one small item for each name of the configuration, or for each process';
const oneDocument = 'items of one document, which the limits of its aggregate bound';

/** Lists that do not use `memory.page`, with the reason why they are small. */
const classified: Readonly<Record<string, string>> = {
  'GET /api/v1/events': 'read by the store in pages that are bounded in bytes',
  'GET /api/v1/events/search': 'within memory.load, and the results end with 2 MiB',
  'GET /api/v1/streams/{stream}/events': 'read by the store in pages that are bounded in bytes',
  'GET /admin/audit': 'at most 1,000 entries, whose texts have at most 1,000 characters',
  'GET /admin/bulk/{id}/items': 'at most 1,000 ids with their outcome, of one job',
  'GET /admin/destinations': configured,
  'GET /admin/failures': 'one item for each cause, with at most 20 tenants; read in small parts',
  'GET /admin/failures/{fingerprint}': 'at most 200 errors; read in small parts',
  'GET /admin/outbox/paused': configured,
  'POST /admin/outbox/discard': 'one outcome for each id of the request',
  'POST /admin/outbox/retry': 'one outcome for each id of the request',
  'GET /admin/outbox/{id}/attempts': 'attempts of one message, whose number and texts are limited',
  'GET /admin/processes': configured,
  'GET /admin/projections': configured,
  'GET /admin/resolve/{id}': 'one item for each kind of object',
  'GET /admin/subscriptions': configured,
  'GET /admin/tokens': 'names and scopes of tokens, which administrators create',
  'GET /api/v1/jobs/counts': configured,
  'GET /api/v1/jobs/groups': configured,
  'GET /api/v1/jobs/types': configured,
  'GET /api/v1/jobs/workers': configured,
  'GET /api/v1/chats/{id}/participants': oneDocument,
  'GET /api/v1/workspaces/{w}/invites': oneDocument,
  'GET /api/v1/workspaces/{w}/members': oneDocument,
  'POST /api/v1/jobs/bulk': 'one id for each job of the request',
  'POST /api/v1/worker/claim':
    'claimed a few at a time within memory.load, until the response is large',
  'POST /api/v1/worker/heartbeat': 'one state for each token of the request',
};

test('every list is read by parts within the memory for readers, or classified as small', async () => {
  await using rig = await openAllModules();
  await rig.platform.start();
  const routes = ownRoutes(rig.api).filter((route) => 'items' in propertiesOf(route));
  const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
  const lists = routes.filter((route) => !(nameOf(route) in classified));
  const known = new Set(routes.map(nameOf));
  assert.deepEqual(
    Object.keys(classified).filter((name) => !known.has(name)),
    [],
  );
  assert.ok(lists.length > 15, `${lists.length} lists`);
  const { secret } = await rig.platform.tokens.create({
    name: 'ada',
    scopes: ['admin'],
    tenant: 'core',
  });
  const params = await idsOf(rig, secret);
  for (const route of lists) {
    assert.equal(await partsRead(route, params), 1, `${nameOf(route)} does not use memory.page`);
  }
});

function propertiesOf({ responses }: Route): object {
  const schema: { readonly properties?: object } | undefined = responses[200]?.schema;
  return schema?.properties ?? {};
}

/** Creates what the lists are about. */
async function idsOf(
  { api, platform }: SecuredApi,
  token: string,
): Promise<Record<string, string>> {
  const create = async (path: string, body: object): Promise<Record<string, string>> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${api.url}${path}`, init);
    assert.equal(response.status, 201, await response.clone().text());
    return (await response.json()) as Record<string, string>;
  };
  const { workspaceId: w = '' } = await create('/api/v1/workspaces', { name: 'Mill' });
  const { chatId: id = '' } = await create(`/api/v1/workspaces/${w}/chats`, { title: 'Wheel' });
  const { subscriptions } = platform.engines;
  const fence = await acquireShard(subscriptions);
  const parked = newLetter(fence, { parked: true, tenant: 'core' });
  await subscriptions.deadLetters.add(fence, parked);
  return {
    w,
    id,
    letter: parked.id,
    customerId: 'cust_1',
    bc: 'notification-slack',
    aggregate: 'slack-template',
  };
}

/** Calls the route, and returns how many of its lists were read within the memory for readers. */
async function partsRead(route: Route, params: Record<string, string>): Promise<number> {
  let parts = 0;
  const request: ApiRequest = {
    params,
    query: {},
    body: {},
    headers: {},
    principal: { kind: 'token', name: 'ada', scopes: ['admin'], tenant: 'core' },
    signal: new AbortController().signal,
    requestId: 'r1',
    address: '127.0.0.1',
    memory: {
      load: (work) => work(),
      async page({ cursor }, read) {
        parts += 1;
        const part = await read({ limit: 2, cursor, bytesMax: 1_000_000 });
        assert.ok(part.items.length <= 2, route.path);
        return part;
      },
      hold: () => undefined,
    },
  };
  await route.handle(request);
  return parts;
}
