// The naming document's §1, §4, §6 and §10 as a user of modules meets them: equal names in two bounded contexts, and two
// versions of one aggregate, in one platform.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { hasCode } from '../src/foundation/error.ts';
import {
  createAppendRules,
  createPlatform,
  createSecretHider,
  defineModule,
} from '../src/platform/index.ts';
import { startApi } from '../src/server/api/start-api.ts';
import { until } from '../src/testing/support/server/api-rig.ts';
import { retireProjection, switchProjection } from '../src/projections/index.ts';
import {
  accountOf,
  accountsOf,
  accountsV2,
  accountV2,
  appendOpened,
  contextOf,
  copyToV2,
  open,
  settled,
  streamsOf,
} from './bounded-contexts.ts';

const memory = { engines: { store: 'memory:' } } as const;
const idsOf = async (
  platform: Awaited<ReturnType<typeof createPlatform>>,
  bc: string,
): Promise<readonly string[]> => {
  const { items } = await platform.documents({ bc, aggregate: 'account' }).bySet('core', 'all');
  return items.map(({ id }) => id);
};

test('an event of another bounded context reaches no projection, reactor, saga or outbox of this one', async () => {
  const messages: unknown[] = [];
  const modules = [contextOf('banking', (payload) => messages.push(payload))];
  await using platform = await createPlatform({ ...memory, modules });
  await appendOpened(platform, 'crm.account.v1-core-a-9');
  await platform.start();
  await platform.handle({ tenant: 'core', id: 'a-1', command: open({ owner: 'Ada' }) });
  await settled(platform);
  assert.deepEqual(await idsOf(platform, 'banking'), ['a-1']);
  assert.deepEqual(await streamsOf(platform, 'banking.letter.v1-'), [
    'banking.letter.v1-core-a-1',
    'banking.letter.v1-core-saga-a-1',
  ]);
  assert.deepEqual(await streamsOf(platform, 'banking.welcome.v1-'), [
    'banking.welcome.v1-core-a-1',
  ]);
  const all = await platform.engines.outbox?.list({});
  assert.deepEqual(
    all?.map(({ payload }) => payload),
    [{ owner: 'Ada' }],
  );
});

test('two bounded contexts with an aggregate of one name run in one platform', async () => {
  const modules = [contextOf('banking'), contextOf('crm')];
  await using platform = await createPlatform({ ...memory, modules });
  await platform.start();
  const idempotencyKey = 'core|shop|open|1';
  const command = open({ owner: 'Ada' });
  await assert.rejects(platform.handle({ tenant: 'core', id: 'a', command }), (error) => {
    assert.ok(hasCode(error, 'COMMAND_AMBIGUOUS'));
    assert.deepEqual(error.details['aggregates'], ['banking.account.v1', 'crm.account.v1']);
    return true;
  });
  const target = { tenant: 'core', id: 'a', command };
  await platform.handle({ ...target, aggregate: 'banking.account.v1', idempotencyKey });
  await platform.handle({ ...target, aggregate: 'crm.account.v1', id: 'b' });
  await assert.rejects(
    platform.handle({ ...target, aggregate: 'shop.account.v1' }),
    (error) => hasCode(error, 'COMMAND_UNKNOWN') && /crm\.account\.v1/.test(error.message),
  );
  // One key has one use, also across contexts.
  await assert.rejects(
    platform.handle({ ...target, aggregate: 'crm.account.v1', idempotencyKey }),
    (error) => hasCode(error, 'COMMAND_KEY_REUSED'),
  );
  await settled(platform);
  assert.deepEqual(await idsOf(platform, 'banking'), ['a']);
  assert.deepEqual(await idsOf(platform, 'crm'), ['b']);
  assert.deepEqual(await streamsOf(platform, 'crm.letter.v1-'), [
    'crm.letter.v1-core-b',
    'crm.letter.v1-core-saga-b',
  ]);
  const banking = accountOf('banking');
  await assert.rejects(platform.load(banking, { tenant: 'core', id: 'a' }), (error) =>
    hasCode(error, 'AGGREGATE_INVALID'),
  );
  const [loaded] = modules[0]?.aggregates ?? [];
  assert.ok(loaded);
  assert.deepEqual(await platform.load(loaded, { tenant: 'core', id: 'b' }), {
    state: { owner: '' },
    revision: -1,
  });
});

test('an event type of two other contexts needs the category, and one category needs no name', async () => {
  const reading = (category?: string) =>
    defineModule({
      name: 'reading',
      outbox: [
        {
          name: 'sub:reading:outbox:v1',
          filter: { types: ['account.opened.v1'], ...(category === undefined ? {} : { category }) },
          mapper: { map: () => null },
        },
      ],
    });
  const two = [contextOf('banking'), contextOf('crm')];
  await assert.rejects(
    createPlatform({ ...memory, modules: [...two, reading()] }),
    (error) =>
      hasCode(error, 'CONFIG_INVALID') &&
      /banking\.account\.v1 and crm\.account\.v1: name one/.test(error.message),
  );
  for (const modules of [
    [...two, reading('crm.account.v1')],
    [contextOf('banking'), reading()],
  ]) {
    await using platform = await createPlatform({ ...memory, modules });
    assert.equal(platform.modules.outbox.at(-1)?.name, 'sub:reading:outbox:v1');
  }
  await assert.rejects(
    createPlatform({ ...memory, modules: [contextOf('banking'), contextOf('banking')] }),
    (error) => hasCode(error, 'CONFIG_INVALID'),
  );
});

test('HTTP clients name the aggregate of an ambiguous command; equal keys of two aggregates do not mix', async () => {
  const v2 = defineModule({
    name: 'banking-v2',
    aggregates: [accountV2],
    commands: { 'account.open': 'append' },
    projections: [accountsV2],
  });
  const modules = [contextOf('banking'), v2];
  await using platform = await createPlatform({ ...memory, modules, roles: ['api'] });
  await using server = await startApi(platform, { port: 0 });
  const { secret } = await platform.tokens.create({
    name: 'a',
    scopes: ['append'],
    tenant: 'core',
  });
  const ask = async (body: object) => {
    const response = await fetch(`${server.url}/api/v1/commands/account.open`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'idempotency-key': 'k-1',
      },
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const none = await ask({ payload: { owner: 'Ada' } });
  assert.deepEqual([none.status, none.body['code']], [400, 'COMMAND_AMBIGUOUS']);
  assert.deepEqual((none.body['details'] as { aggregates: unknown }).aggregates, [
    'banking.account.v1',
    'banking.account.v2',
  ]);
  const one = { aggregate: 'banking.account.v1', payload: { owner: 'Ada' } };
  const two = { aggregate: 'banking.account.v2', payload: { owners: ['Ada', 'Bob'] } };
  for (const isDuplicate of [false, true]) {
    for (const each of [one, two]) {
      const { status, body } = await ask(each);
      assert.deepEqual([status, body['isDuplicate'], body['revision']], [200, isDuplicate, 0]);
    }
  }
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`, 'millrace.v1', {
    headers: { authorization: `Bearer ${secret}` },
  });
  const answers: { id?: string; problem?: { code: string }; result?: { revision: number } }[] = [];
  socket.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString()) as object));
  await once(socket, 'open');
  const message = { type: 'command', command: 'account.open', aggregateId: 'w' };
  socket.send(JSON.stringify({ ...message, id: '1', payload: { owners: ['Ada'] } }));
  socket.send(JSON.stringify({ ...message, id: '2', ...two }));
  const answerOf = (id: string) => answers.find((each) => each.id === id);
  await until(() => answerOf('1') !== undefined && answerOf('2') !== undefined);
  socket.terminate();
  assert.equal(answerOf('1')?.problem?.code, 'COMMAND_AMBIGUOUS');
  assert.equal(answerOf('2')?.result?.revision, 0);
  const streams = await streamsOf(platform, 'banking.account.');
  assert.deepEqual(
    streams.map((stream) => stream.split('-', 1)[0]),
    ['banking.account.v1', 'banking.account.v2', 'banking.account.v2'],
  );
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    paths: Record<
      string,
      { post: { requestBody: { content: Record<string, { schema: object }> } } }
    >;
  };
  const schema = JSON.stringify(
    paths['/api/v1/commands/account.open']?.post.requestBody.content['application/json']?.schema,
  );
  assert.match(schema, /"banking\.account\.v1","banking\.account\.v2"/);
  assert.match(schema, /"owners"/);
});

test('version 1 and 2 of an aggregate run together, a reactor copies, and version 1 is retired', async () => {
  const v2 = defineModule({
    name: 'banking-v2',
    aggregates: [accountV2],
    projections: [accountsV2],
    reactors: [copyToV2],
  });
  const accounts = accountsOf('banking');
  const modules = [{ ...contextOf('banking'), projections: [accounts] }, v2];
  const warnings: unknown[] = [];
  const log = { warn: (fields: object, message: string) => warnings.push([fields, message]) };
  const observer = { log: { ...log, error: log.warn, info() {}, debug() {} } };
  await using platform = await createPlatform({ ...memory, modules, observer });
  const first = {
    tenant: 'core',
    aggregate: 'banking.account.v1',
    command: open({ owner: 'Ada' }),
  };
  await platform.handle({ ...first, id: 'a' });
  await platform.start();
  await platform.handle({ ...first, id: 'b' });
  await settled(platform);
  assert.deepEqual(await streamsOf(platform, 'banking.account.v2-'), [
    'banking.account.v2-core-a',
    'banking.account.v2-core-b',
  ]);
  const documents = platform.documents({ bc: 'banking', aggregate: 'account' });
  assert.deepEqual((await documents.get('core', 'b'))?.document, { owner: 'Ada' });
  await switchProjection(platform.engines, accountsV2);
  await platform.stop();
  assert.equal(await retireProjection(platform.engines, accounts), 2);
  // A process that still defines version 1 starts.
  await platform.start();
  const sub = 'sub:banking:accounts:v1';
  const retired = { sub, family: 'banking.account', version: 1, status: 'retired' };
  assert.deepEqual(warnings, [[retired, 'retired projection not started']]);
  const { position } = await platform.handle({ ...first, id: 'c' });
  await settled(platform);
  await using server = await startApi(platform, { port: 0 });
  const { secret } = await platform.tokens.create({ name: 'a', scopes: ['read'], tenant: 'core' });
  const path = `/api/v1/documents/banking/account/c?waitFor=${String(position)}`;
  const headers = { authorization: `Bearer ${secret}` };
  assert.deepEqual(await (await fetch(server.url + path, { headers })).json(), {
    id: 'c',
    revision: 0,
    document: { owners: ['Ada'] },
  });
  const statuses = await platform.engines.readModelVersions.list('banking.account');
  assert.deepEqual(
    statuses.map(({ version, status, active }) => [version, status, active]),
    [
      [1, 'retired', false],
      [2, 'ready', true],
    ],
  );
});

test('a read model of version 2 over streams of version 1 names their category', async () => {
  const accounts = accountsOf('banking');
  const old = { ...contextOf('banking'), projections: [accounts, accountsV2] };
  await assert.rejects(
    createPlatform({ ...memory, modules: [old] }),
    (error) =>
      hasCode(error, 'CONFIG_INVALID') &&
      error.details['nearest'] === 'banking.account.v1' &&
      /filter: \{ category: 'banking\.account\.v1' \}/.test(error.message),
  );
});

test('secrets and append rules of one aggregate do not apply to its namesake', async () => {
  const modules = [{ ...contextOf('banking'), secrets: { account: ['owner'] } }, contextOf('crm')];
  await using platform = await createPlatform({ ...memory, modules });
  const hider = createSecretHider(platform.modules);
  const event = { type: 'account.opened.v1', payload: { owner: 'Ada' }, headers: {} };
  const shown = (stream: string) => hider.event({ ...event, stream }).payload;
  assert.deepEqual(shown('banking.account.v1-core-a'), { owner: '[secret]' });
  assert.deepEqual(shown('crm.account.v1-core-a'), { owner: 'Ada' });
  // Not a stream of an aggregate: the type decides, so that nothing secret is shown.
  assert.deepEqual(shown('old.account.v1-core-a'), { owner: '[secret]' });
  const document = { owner: 'Ada' };
  assert.deepEqual(hider.document({ bc: 'banking', aggregate: 'account' }, document), {
    owner: '[secret]',
  });
  assert.equal(hider.document({ bc: 'crm', aggregate: 'account' }, document), document);
  await assert.rejects(
    createPlatform({
      ...memory,
      modules: [{ ...contextOf('banking'), secrets: { acount: ['owner'] } }],
    }),
    (error) => hasCode(error, 'CONFIG_INVALID') && /acount/.test(error.message),
  );
  const accept = createAppendRules(platform.modules);
  for (const stream of ['banking.account.v1-core-a', 'crm.account.v1-core-a']) {
    assert.deepEqual(accept({ ...event, stream }, true), { owner: 'Ada' });
  }
  assert.throws(
    () => accept({ ...event, stream: 'shop.account.v1-core-a' }, true),
    (error) =>
      hasCode(error, 'EVENT_UNKNOWN') &&
      /banking\.account\.v1 and crm\.account\.v1/.test(error.message),
  );
});
