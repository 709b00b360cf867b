// HTTP refuses deeply nested JSON, but an older store may have it: no response may fail because of such an event.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { createEnvelope } from '../../contracts/index.ts';
import { body, openApi, type Api } from '../../testing/support/server/api-rig.ts';
import { maskedValue } from '../../platform/modules/hide-secrets.ts';
import { parseCondition } from '../api/event-search.ts';
import { kurrentStoreOptions, startKurrentServer } from '../kurrent/index.ts';

const aggregate = { bc: 'shop', type: 'order', id: '1' };
const stream = 'shop.order.v1-core-1';

/** A list in a list, and so on. */
const nested = (depth: number): unknown =>
  JSON.parse(`${'['.repeat(depth)}"private"${']'.repeat(depth)}`);

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

test('an event of depth 1,000 is read, searched and followed, masked and as it is', async () => {
  const file = join(folder, 'events.db');
  await using api = await openApi({ maskPayloads: true }, { store: `sqlite:${file}` });
  const type = 'order.placed.v1';
  const context = { tenant: 'core', aggregate, correlationId: 'deep' };
  const event = createEnvelope({ type, payload: { amount: 13 } }, context);
  await api.platform.engines.store.append(stream, [event]);
  // The store refuses such events today.
  using database = new DatabaseSync(file);
  const stored = JSON.stringify({ amount: 13, deep: nested(1_000) });
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

test('masking and search end at the depth that HTTP accepts', () => {
  const deep = nested(20_000);
  assert.equal(JSON.stringify(maskedValue(deep)).includes('private'), false);
  assert.equal(parseCondition('none=1')(deep), false);
});
