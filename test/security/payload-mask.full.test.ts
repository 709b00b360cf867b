// With `maskPayloads`, no route shows the value of a payload to credentials without the scope `admin`.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { defineModule } from '../../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../../src/projections/index.ts';
import { saga } from '../../src/reactors/index.ts';
import { subscription, Terminal } from '../../src/subscriptions/index.ts';
import { body, openApi, until, type Api } from '../../src/testing/support/server/api-rig.ts';
import { accepted, enqueue, report, running } from '../../src/testing/support/server/task-rig.ts';
import { sampleOf, type SampleSchema } from './two-tenant-cases.ts';

const marker = 'zeldasdreamcottage';
const stream = 'shop.order.v1-core-o1';
const flow = 'flow-1';

interface Order {
  readonly email: string;
}
const placed = defineEvent('order.placed.v1', z.object({ email: z.string() }));
const review = defineCommand('account.review', z.object({}));
const emailOf = ({ payload }: { readonly payload: unknown }): string => (payload as Order).email;

/** Each part fails with an error that quotes the payload. */
const shop = defineModule({
  name: 'shop',
  projections: [
    projection({
      name: 'sub:shop:orders:v1',
      filter: { category: 'shop.order.v1' },
      readModel: readModel<Order>({
        bc: 'shop',
        aggregate: 'order',
        version: 1,
        indexes: { email: ({ email }) => email },
      }),
      on: { 'order.placed.v1': (_before, { payload }: ProjectedEvent<Order>) => payload },
    }),
  ],
  subscriptions: [
    subscription({
      name: 'sub:shop:mail:v1',
      filter: { category: 'shop.order.v1' },
      onDeadLetter: 'park',
      handler: (event) => {
        throw new Terminal(`no mailbox ${emailOf(event)}`);
      },
    }),
  ],
  sagas: [
    saga({
      bc: 'shop',
      name: 'checkout',
      version: 1,
      from: 'start',
      filter: { category: 'shop.order.v1' },
      events: [placed],
      startOn: ['order.placed.v1'],
      correlateBy: ({ aggregate }) => aggregate.id,
      initial: { email: '' },
      on: {
        'order.placed.v1': ({ payload }) => [
          { data: payload },
          { run: 'review', id: 'o1', command: review({}) },
        ],
      },
      steps: {
        review: {
          onDone: ({ data }) => {
            throw new Terminal(`rejected ${data.email}`);
          },
        },
      },
      retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1 },
    }),
  ],
  outbox: [
    {
      name: 'sub:shop:outbox:v1',
      filter: { category: 'shop.order.v1' },
      mapper: {
        map: (event) => ({
          integrationType: 'mailer:x',
          eventType: event.type,
          payload: { email: emailOf(event) },
        }),
      },
    },
  ],
  destinations: {
    mailer: async ({ payload }) => ({
      kind: 'dead',
      error: `HTTP 422: unknown ${String(payload['email'])}`,
      answer: { status: 422, body: `unknown ${String(payload['email'])}` },
    }),
  },
});

const folder = await mkdtemp(join(tmpdir(), 'millrace-mask-'));
let api: Api;
let ids: Readonly<Record<string, string>>;
let tokens: Readonly<Record<'admin' | 'operate' | 'read', string>>;

before(async () => {
  const store = `sqlite:${join(folder, 'shop.db')}`;
  api = await openApi({ maskPayloads: true }, { store }, [shop]);
  tokens = {
    admin: await api.token('admin'),
    operate: await api.token('operate'),
    read: await api.token('read'),
  };
  ids = await fill();
});
after(async () => {
  await api[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function fill(): Promise<Readonly<Record<string, string>>> {
  const { admin } = tokens;
  const payload = { email: marker, nested: { list: [{ email: marker }] } };
  const events = [1, 2].map(() => ({ type: 'order.placed.v1', payload }));
  const sent = await api.post(`/api/v1/streams/${stream}/events`, { events }, admin, {
    'x-tenant-id': 'core',
    'x-correlation-id': flow,
  });
  assert.ok(sent.ok, await sent.text());
  const jobs = await Promise.all(
    ['failed', 'completed'].map(() =>
      enqueue(api, admin, { payload, tenant: 'core', correlationId: flow }),
    ),
  );
  for (const end of ['fail', 'complete'] as const) {
    const job = await running(api, admin);
    await accepted(report(api, admin, job, 'steps/start', { name: 'send' }));
    await accepted(report(api, admin, job, 'steps/finish', { name: 'send', result: payload }));
    const progress = { percent: 50, message: `half of ${marker}` };
    await accepted(report(api, admin, job, 'progress', progress));
    const outcome =
      end === 'fail' ? { failure: { message: `no ${marker}` } } : { result: { sent: marker } };
    await accepted(report(api, admin, job, end, outcome));
  }
  const { subscriptions, outbox, sagas } = api.platform.engines;
  await until(async () => {
    const letters = await subscriptions.deadLetters.list({ status: 'pending' });
    const messages = (await outbox?.list({ status: 'DEAD' })) ?? [];
    const parked = await sagas.list({ status: 'parked' });
    const documents = await api.platform
      .documents({ bc: 'shop', aggregate: 'order' })
      .get('core', 'o1');
    return [letters, messages, parked].every((each) => each.length > 0) && documents !== undefined;
  });
  const [letter] = await subscriptions.deadLetters.list({ handler: 'sub:shop:mail:v1' });
  const [message] = (await outbox?.list({ status: 'DEAD' })) ?? [];
  const [parked] = await sagas.list({ status: 'parked' });
  assert.ok(letter !== undefined && message !== undefined && parked !== undefined);
  const groups = await get<{ readonly items: readonly { readonly fingerprint: string }[] }>(
    '/admin/failures',
  );
  return {
    letter: letter.id,
    message: message.id,
    saga: parked.stream,
    failed: jobs[0] ?? '',
    completed: jobs[1] ?? '',
    fingerprint: groups.items[0]?.fingerprint ?? '',
  };
}

async function get<T>(path: string): Promise<T> {
  const response = await api.ask(path, tokens.admin);
  assert.equal(response.status, 200, await response.clone().text());
  return body<T>(response);
}

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: SampleSchema }>>;
  };
}

interface Call {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/** Workers and commands get and send payloads; the routes of modules are applications. */
const isAdministration = (path: string): boolean =>
  /^\/(?:admin|console|api\/v1\/(?:documents|events|jobs|streams))\b/.test(path);

/** One call of each route of the reference, with ids that exist. */
async function callsOfReference(): Promise<readonly Call[]> {
  const { paths } = await get<{
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  }>('/openapi.json');
  return Object.entries(paths)
    .filter(([path]) => isAdministration(path))
    .flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { requestBody }]): Call => {
        const schema = requestBody?.content['application/json']?.schema;
        return {
          name: `${method.toUpperCase()} ${path}`,
          method: method.toUpperCase(),
          path: path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
            encodeURIComponent(valueOf(path, name)),
          ),
          ...(schema === undefined ? {} : { body: bodies[path] ?? sampleOf(schema) }),
        };
      }),
    );
}

const bodies: Readonly<Record<string, unknown>> = {
  '/admin/bulk/preview': { action: 'replay', filter: {} },
  '/admin/dlq/{id}/note': { notes: 'seen' },
  '/admin/jobs/{id}/retry': {},
  '/admin/jobs/{id}/cancel': {},
};

function valueOf(path: string, name: string): string {
  const id = ids[name];
  if (id !== undefined) return id;
  const known: Readonly<Record<string, string>> = {
    correlationId: flow,
    bc: 'shop',
    aggregate: 'order',
    group: 'monitors',
    type: 'email-send',
    name: path.includes('projections') ? 'sub:shop:orders:v1' : 'sub:shop:mail:v1',
    stream: path.includes('sagas') ? (ids['saga'] ?? '') : stream,
    id: path.includes('/dlq/')
      ? (ids['letter'] ?? '')
      : path.includes('/outbox/')
        ? (ids['message'] ?? '')
        : path.includes('/documents/')
          ? 'o1'
          : path.includes('/resolve/')
            ? stream
            : (ids['failed'] ?? ''),
  };
  return known[name] ?? 'x';
}

/** The text of a response; of an endless one, what arrives until a second event has been sent. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get('content-type') !== 'text/event-stream') return response.text();
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if ((text.match(/^data: /gm) ?? []).length >= 2) break;
  }
  return text;
}

const send = ({ method, path, body: given }: Call, token: string): Promise<Response> =>
  api.ask(path, token, {
    method,
    ...(given === undefined
      ? {}
      : { body: JSON.stringify(given), headers: { 'content-type': 'application/json' } }),
  });

/** Endless without a signal. */
const isSilent = ({ name }: Call): boolean => /\/jobs\/(?:tail|ends)$/.test(name);

test('routes show payload values to administrators, and masked ones to readers and operators', async () => {
  const calls = (await callsOfReference()).filter((call) => !isSilent(call));
  const looks = calls.filter(({ method }) => method === 'GET');
  const ownTenant = { 'x-tenant-id': 'core' };
  const shown: string[] = [];
  for (const call of looks) {
    const full = await api.ask(call.path, tokens.admin, { headers: ownTenant });
    if ((await textOf(full)).includes(marker)) shown.push(call.name);
    for (const scope of ['read', 'operate'] as const) {
      const masked = await api.ask(call.path, tokens[scope], { headers: ownTenant });
      const text = await textOf(masked);
      assert.equal(text.includes(marker), false, `${call.name} for ${scope}: ${text}`);
    }
  }
  assert.deepEqual(shown.toSorted(), [
    'GET /admin/dlq',
    'GET /admin/dlq/{id}',
    'GET /admin/failures',
    'GET /admin/failures/{fingerprint}',
    'GET /admin/outbox',
    'GET /admin/outbox/{id}',
    'GET /admin/outbox/{id}/attempts',
    'GET /admin/parked-streams',
    'GET /admin/sagas/{stream}',
    'GET /admin/traces/{correlationId}',
    'GET /api/v1/documents/{bc}/{aggregate}',
    'GET /api/v1/documents/{bc}/{aggregate}/{id}',
    'GET /api/v1/events',
    'GET /api/v1/events/search',
    'GET /api/v1/events/subscribe',
    'GET /api/v1/jobs',
    'GET /api/v1/jobs/{id}',
    'GET /api/v1/jobs/{id}/result',
    'GET /api/v1/streams/{stream}/events',
    'GET /api/v1/streams/{stream}/subscribe',
  ]);
});

test('keys, statuses and classes of errors stay, and workers get the payloads of their jobs', async () => {
  const letter = await body<{
    readonly payload: unknown;
    readonly error: string;
    readonly cause: { readonly name: string; readonly stack: string };
  }>(await api.ask(`/admin/dlq/${ids['letter'] ?? ''}`, tokens.read));
  assert.deepEqual(letter.payload, { email: '•••', nested: { list: [{ email: '•••' }] } });
  assert.equal(letter.error, '(masked)');
  assert.equal(letter.cause.name, 'Terminal');
  const message = await body<{ readonly lastError: string }>(
    await api.ask(`/admin/outbox/${ids['message'] ?? ''}`, tokens.read),
  );
  assert.equal(message.lastError, 'HTTP 422: (masked)');
  await enqueue(api, tokens.admin, { payload: { email: marker } });
  const claimed = await running(api, await api.token('work'));
  assert.deepEqual(claimed.task.payload, { email: marker });
});

test('payload values cannot be searched, neither by path nor by an index', async () => {
  const documents = '/api/v1/documents/shop/order';
  const searches = [
    `/api/v1/events/search?payload=email=${marker}`,
    `${documents}?index=email&value=${marker}`,
    `${documents}?set=open`,
    `${documents}?range=total&from=1`,
  ];
  for (const path of searches) {
    const refused = await api.ask(path, tokens.operate, { headers: { 'x-tenant-id': 'core' } });
    assert.equal(refused.status, 403, path);
    assert.match(await refused.text(), /payloads are masked/);
  }
  const [search = ''] = searches;
  const found = await body<{ readonly items: readonly unknown[] }>(
    await api.ask(search, tokens.admin),
  );
  assert.equal(found.items.length, 2);
});

test('signals of jobs and WebSockets are masked', async () => {
  const tail = `/api/v1/jobs/tail?id=${ids['failed'] ?? ''}`;
  const signals = async (token: string): Promise<string> => (await api.ask(tail, token)).text();
  assert.match(await signals(tokens.admin), new RegExp(marker));
  assert.doesNotMatch(await signals(tokens.operate), new RegExp(marker));
  for (const token of [tokens.admin, tokens.operate]) {
    const { promise, resolve } = Promise.withResolvers<string>();
    const url = `${api.server.url.replace('http', 'ws')}/ws?token=${token}`;
    const socket = new WebSocket(url, 'millrace.v1');
    socket.addEventListener('open', () =>
      socket.send(JSON.stringify({ type: 'subscribe', id: 's', stream })),
    );
    socket.addEventListener('message', ({ data }) => {
      if (String(data).includes('order.placed.v1')) resolve(String(data));
    });
    assert.equal((await promise).includes(marker), token === tokens.admin);
    socket.close();
  }
});

test('responses to changes are masked', async () => {
  const calls = await callsOfReference();
  const changes = calls.filter(({ method }) => method !== 'GET');
  let done = 0;
  for (const call of changes) {
    const response = await send(call, tokens.operate);
    done += response.ok ? 1 : 0;
    const text = await textOf(response);
    assert.equal(text.includes(marker), false, `${call.name}: ${text}`);
  }
  assert.ok(done > 15, `${done} of ${changes.length} changes were accepted`);
});
