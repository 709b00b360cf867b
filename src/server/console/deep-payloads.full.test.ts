// HTTP refuses deeply nested JSON, but an older store may have it: no response may fail because of such an event.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { createEnvelope } from '../../contracts/index.ts';
import { startStandIn } from '../../testing/kurrent-stand-in/stand-in.ts';
import { body, openApi, until, type Api } from '../../testing/support/server/api-rig.ts';
import { maskedValue } from '../../platform/modules/hide-secrets.ts';
import { fromWire } from '../kurrent/events/from-wire.ts';
import { parseCondition } from '../api/event-search.ts';
import { kurrentStoreOptions, startKurrentServer } from '../kurrent/index.ts';

const aggregate = { bc: 'shop', type: 'order', id: '1' };
const stream = 'shop.order.v1-core-1';

/** A list in a list, and so on. */
const nestedText = (depth: number): string => `${'['.repeat(depth)}"private"${']'.repeat(depth)}`;
const nested = (depth: number): unknown => JSON.parse(nestedText(depth));

async function firstMessage(api: Api, token: string): Promise<string> {
  const abort = new AbortController();
  const { status, body: sent } = await api.ask(`/api/v1/streams/${stream}/subscribe`, token, {
    signal: abort.signal,
  });
  assert.equal(status, 200);
  let text = '';
  for await (const chunk of sent?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (/order\.placed[^\n]*\n\n/.test(text)) break;
  }
  abort.abort();
  return text;
}

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-deep-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

for (const depth of [1_000, 20_000]) {
  test(`an event of depth ${depth} is read, searched and followed, masked and as it is`, async () => {
    const file = join(folder, `${depth}.db`);
    await using api = await openApi({ maskPayloads: true }, { store: `sqlite:${file}` });
    const type = 'order.placed.v1';
    const context = { tenant: 'core', aggregate, correlationId: 'deep' };
    const event = createEnvelope({ type, payload: { amount: 13 } }, context);
    await api.platform.engines.store.append(stream, [event]);
    // The store refuses such events, but an older one may have them.
    using database = new DatabaseSync(file, { timeout: 10_000 });
    const stored = `{"amount":13,"deep":${nestedText(depth)}}`;
    const { changes } = database
      .prepare('UPDATE events SET payload = ? WHERE event_id = ?')
      .run(stored, event.eventId);
    assert.equal(changes, 1);
    const admin = await api.token('admin');
    const operator = await api.token('operate');
    for (const [path, hasPayload] of [
      [`/api/v1/streams/${stream}/events`, true],
      ['/api/v1/events?direction=backwards', true],
      ['/api/v1/events/search?correlationId=deep', true],
      ['/admin/traces/deep', false],
      [`/admin/resolve/${event.eventId}`, false],
    ] as const) {
      for (const token of [admin, operator]) {
        const response = await api.ask(path, token);
        const text = await response.text();
        assert.equal(response.status, 200, `${path} ${text.slice(0, 300)}`);
        assert.equal(text.includes('private'), hasPayload && token === admin, path);
      }
    }
    for (const [condition, found] of [
      ['amount=13', 1],
      ['deep.none=1', 0],
    ] as const) {
      const response = await api.ask(`/api/v1/events/search?payload=${condition}`, admin);
      assert.equal(response.status, 200, await response.clone().text());
      const { items } = await body<{ readonly items: readonly unknown[] }>(response);
      assert.equal(items.length, found, condition);
    }
    for (const token of [admin, operator]) {
      assert.equal((await firstMessage(api, token)).includes('private'), token === admin);
    }
  });
}

test('a deep event of a gRPC client is stored and shown as its bytes', async () => {
  await using api = await openApi({}, { store: 'memory:' }, [], kurrentStoreOptions);
  await using server = await startKurrentServer(api.platform.engines.store, { port: 0 });
  const client = KurrentDBClient.connectionString(server.url);
  const data = { deep: nested(1_000) };
  const events = [jsonEvent({ type: 'order.placed.v1', data: data as never })];
  await client.appendToStream(stream, events);
  await client.dispose();
  const token = await api.token('read');
  const response = await api.ask(`/api/v1/streams/${stream}/events`, token);
  const { items } = await body<{ items: { payload: { $bytes: string } }[] }>(response);
  const bytes = Buffer.from(items[0]?.payload.$bytes ?? '', 'base64');
  assert.equal(bytes.toString(), JSON.stringify(data));
});

test('a deep event that another program wrote to KurrentDB is shown, and its dead letter too', async () => {
  await using server = await startStandIn({ preset: '24.10' });
  await using api = await openApi({}, { store: server.url });
  const data = `{"deep":${nestedText(20_000)}}`;
  const written = {
    eventId: randomUUID(),
    type: 'account.deposited.v1',
    isJson: true,
    data: Buffer.from(data),
    metadata: Buffer.from(`{"deep":${nestedText(20_000)}}`),
  };
  const account = 'banking.account.v1-core-1';
  const origin = { tenant: 'core', aggregate: { bc: 'banking', type: 'account', id: '1' } };
  const now = new Date().toISOString();
  await server.store.append(account, [fromWire(written, { origin, now })]);
  const { deadLetters } = api.platform.engines.subscriptions;
  await until(async () => (await deadLetters.list({})).length > 0);
  const [letter] = await deadLetters.list({});
  const token = await api.token('read');
  for (const path of [
    `/api/v1/streams/${account}/events`,
    '/api/v1/events',
    `/api/v1/events/search?stream=${account}`,
    `/admin/dlq/${letter?.id}`,
  ]) {
    const response = await api.ask(path, token);
    const text = await response.text();
    assert.equal(response.status, 200, `${path} ${text.slice(0, 300)}`);
    assert.ok(text.includes(`"payload":${data}`), `${path} ${text.slice(0, 300)}`);
  }
  for (const path of ['/admin/dlq', '/admin/failures']) {
    const response = await api.ask(path, token);
    assert.equal(response.status, 200, `${path} ${await response.text()}`);
  }
});

test('masking and search end at the depth that HTTP accepts', () => {
  const deep = nested(20_000);
  assert.equal(JSON.stringify(maskedValue(deep)).includes('private'), false);
  assert.equal(parseCondition('none=1')(deep), false);
});
