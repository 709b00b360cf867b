// §5 of the naming document and §3.3 of the outbox document: events that other services write with the official client
// are read in every form by projections, sagas, outbox, traces and HTTP. The rows of the outbox are read with pg.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import pg from 'pg';
import { kurrentStoreOptions, startKurrentServer } from '../../src/server/kurrent/index.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { body, openApi, until, type Api } from '../../src/testing/support/server/api-rig.ts';
import {
  deposited,
  envelopeEvent,
  metadataEvent,
  occurredAt,
  plainEvent,
  streamOf,
} from './event-forms.ts';
import { collect, kurrentClient, type OfficialClient } from './official-clients.ts';

interface Deployment extends AsyncDisposable {
  readonly api: Api;
  readonly client: OfficialClient;
  readonly rows: pg.Pool;
}

const { connect } = await kurrentClient();

/** EventStoreDB with the rest in PostgreSQL. */
async function onEventStoreDb(): Promise<Deployment> {
  await using opened = new AsyncDisposableStack();
  const server = opened.use(await startStandIn({ preset: '24.10' }));
  const { url } = await sharedPostgres();
  const api = opened.use(await openApi({}, { store: server.url, outbox: url }));
  return deployed(opened, api, { kurrent: server.url, postgres: url });
}

/** PostgreSQL, which clients reach through the KurrentDB protocol. */
async function onPostgres(): Promise<Deployment> {
  await using opened = new AsyncDisposableStack();
  const { url } = await sharedPostgres();
  const api = opened.use(await openApi({}, { store: url }, [], kurrentStoreOptions));
  const served = startKurrentServer(api.platform.engines.store, { port: 0 });
  return deployed(opened, api, { kurrent: opened.use(await served).url, postgres: url });
}

function deployed(
  opened: AsyncDisposableStack,
  api: Api,
  urls: { readonly kurrent: string; readonly postgres: string },
): Deployment {
  const client = opened.use(connect(urls.kurrent));
  const rows = new pg.Pool({ connectionString: urls.postgres, max: 1 });
  opened.defer(() => rows.end());
  const all = opened.move();
  return { api, client, rows, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

const balanceOf = async ({ platform }: Api, id: string): Promise<unknown> =>
  (await platform.documents({ bc: 'banking', aggregate: 'account' }).get('core', id))?.document;

for (const [name, deploy] of Object.entries({
  EventStoreDB: onEventStoreDb,
  PostgreSQL: onPostgres,
})) {
  const deployment = await deploy();
  after(() => deployment[Symbol.asyncDispose]());
  const { api, client, rows } = deployment;
  const { platform } = api;

  const outboxRows = async (id: string): Promise<readonly Record<string, unknown>[]> => {
    await until(async () => {
      const { rowCount } = await rows.query(
        `select 1 from core_outbox.integration_outbox where source_stream_id = $1`,
        [streamOf(id)],
      );
      return rowCount === 1;
    });
    const found = await rows.query<Record<string, unknown>>(
      `select tenant_id, user_id, correlation_id, payload::jsonb as payload
       from core_outbox.integration_outbox where source_stream_id = $1`,
      [streamOf(id)],
    );
    return found.rows;
  };

  const cases = {
    envelope: {
      sent: envelopeEvent('envelope', 1),
      read: { amount: 1 },
      row: { tenant_id: 'core', user_id: 'u-1', correlation_id: 'flow-envelope' },
      headers: { source: 'MakerModule' },
    },
    'outbox-metadata': {
      sent: metadataEvent('outbox-metadata', 2),
      read: { amount: 2 },
      row: { tenant_id: 'core', user_id: 'u-2', correlation_id: 'flow-outbox-metadata' },
      headers: { region: 'za', source: 'ledger-service' },
    },
  } as const;

  for (const [id, { sent, read, row, headers }] of Object.entries(cases)) {
    test(`an event in the form '${id}' passes through the whole flow, on ${name}`, async () => {
      await client.append(streamOf(id), sent);
      assert.deepEqual(await outboxRows(id), [{ ...row, payload: read }]);
      await until(async () => (await balanceOf(api, id)) !== undefined);
      assert.deepEqual(await balanceOf(api, id), { balance: read.amount });
      await until(async () => {
        const saga = platform.engines.store.readStream(`banking.review.v1-core-${id}`);
        return (await saga.toArray()).length > 0;
      });
      const token = await api.token('read', 'core');
      const response = await api.ask(`/api/v1/streams/${streamOf(id)}/events`, token);
      const { items } = await body<{ items: Record<string, unknown>[] }>(response);
      const [event] = items;
      assert.deepEqual(
        [event?.['payload'], event?.['correlationId'], event?.['occurredAt'], event?.['headers']],
        [read, row.correlation_id, occurredAt, headers],
      );
      assert.deepEqual(event?.['aggregate'], { bc: 'banking', type: 'account', id });
      const admin = await api.token('admin');
      const trace = await api.ask(`/admin/traces/${row.correlation_id}?waitMs=30000`, admin);
      assert.equal(trace.status, 200);
      assert.match(JSON.stringify(await trace.json()), new RegExp(sent.id));
      // The next command is decided on the state that this event gives.
      const { tooRich } = await platform
        .handle({
          tenant: 'core',
          id,
          command: { type: 'account.deposit', payload: { amount: 1_000 } },
        })
        .then(
          () => ({ tooRich: false }),
          (error: Error) => ({ tooRich: /too much/.test(error.message) }),
        );
      assert.equal(tooRich, true);
      const [raw] = await collect(client.api.readStream(streamOf(id), { maxCount: 1 }));
      assert.deepEqual([raw?.event?.data, raw?.event?.metadata], [sent.data, sent.metadata]);
    });
  }

  test(`an event without metadata has the tenant of its stream, on ${name}`, async () => {
    await client.append(streamOf('plain'), plainEvent(3));
    const [row] = await outboxRows('plain');
    assert.deepEqual([row?.['tenant_id'], row?.['user_id']], ['core', null]);
    assert.deepEqual(row?.['payload'], { amount: 3 });
    await until(async () => (await balanceOf(api, 'plain')) !== undefined);
    assert.deepEqual(await balanceOf(api, 'plain'), { balance: 3 });
  });

  test(`a tenant or an aggregate that contradicts the stream is a dead letter with a code, on ${name}`, async () => {
    const wrong = {
      'wrong-tenant': envelopeEvent('wrong-tenant', 4, { tenant: 'demo' }),
      'wrong-tenant-id': metadataEvent('wrong-tenant-id', 5, 'demo'),
      'wrong-aggregate': envelopeEvent('other', 6),
    };
    for (const [id, sent] of Object.entries(wrong)) await client.append(streamOf(id), sent);
    const { deadLetters } = platform.engines.subscriptions;
    const handler = 'sub:banking:outbox:v1';
    const found = async () =>
      (await deadLetters.list({ handler })).map(({ stream, error }): [string, unknown] => [
        stream.slice(streamOf('').length),
        /[A-Z]+_[A-Z]+/.exec(error)?.[0],
      ]);
    await until(async () => (await found()).length === 3);
    assert.deepEqual(Object.fromEntries(await found()), {
      'wrong-aggregate': 'ENVELOPE_INVALID',
      'wrong-tenant': 'TENANT_MISMATCH',
      'wrong-tenant-id': 'TENANT_MISMATCH',
    });
    for (const id of [...Object.keys(wrong), 'other'])
      assert.equal(await balanceOf(api, id), undefined);
  });
}

test('the official client reads the format that a store is set to write', async () => {
  await using server = await startStandIn({ preset: '24.10' });
  await using client = connect(server.url);
  const { url } = await sharedPostgres();
  for (const eventFormat of ['envelope', 'metadata'] as const) {
    await using api = await openApi({}, { store: server.url, outbox: url }, [], { eventFormat });
    const id = eventFormat;
    await api.platform.handle({
      tenant: 'core',
      id,
      command: { type: 'account.deposit', payload: { amount: 7 } },
      correlationId: 'flow-7',
      user: { id: 'u-7' },
    });
    const [read] = await collect(client.api.readStream(streamOf(id)));
    const { data, metadata } = (read?.event ?? {}) as {
      readonly data: Readonly<Record<string, unknown>>;
      readonly metadata: Readonly<Record<string, unknown>>;
    };
    if (eventFormat === 'envelope') {
      assert.deepEqual(
        [data['type'], data['eventId'], data['correlationId'], data['tenant'], data['payload']],
        [deposited, read?.event?.id, 'flow-7', 'core', { amount: 7 }],
      );
      assert.deepEqual(data['aggregate'], { bc: 'banking', type: 'account', id, version: 1 });
      assert.equal(metadata['$correlationId'], 'flow-7');
    } else {
      assert.deepEqual(data, { amount: 7 });
      const { correlationId, tenantId, userId, source } = metadata;
      assert.deepEqual(
        [correlationId, tenantId, userId, source],
        ['flow-7', 'core', 'u-7', 'banking'],
      );
      assert.match(String(metadata['occurredAt']), /^\d{4}-.*Z$/);
    }
    await until(async () => (await balanceOf(api, id)) !== undefined);
    assert.deepEqual(await balanceOf(api, id), { balance: 7 });
  }
});
