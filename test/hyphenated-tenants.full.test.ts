// Tenants with hyphens, such as the naming document's `demo-za`: one directory for the library, the command line, tokens, JWTs,
// the KurrentDB protocol and all handlers of events.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { hasCode } from '../src/foundation/error.ts';
import { createPlatform, type Platform, type PlatformConfig } from '../src/platform/index.ts';
import { kurrentStoreOptions, startKurrentServer } from '../src/server/kurrent/index.ts';
import { until } from '../src/testing/support/server/api-rig.ts';
import { contextOf, open, settled } from './bounded-contexts.ts';
import { workFolder } from './cli-store-terminal.ts';

const command = open({ owner: 'Ada' });
const banking = (more: PlatformConfig = {}): Promise<Platform> =>
  createPlatform({ engines: { store: 'memory:' }, modules: [contextOf('banking')], ...more });
const documentOf = async ({ documents }: Platform, tenant: string, id: string): Promise<unknown> =>
  (await documents({ bc: 'banking', aggregate: 'account' }).get(tenant, id))?.document;

test('a platform knows the tenants of its configuration, and stores them for other processes', async () => {
  await using folder = await workFolder();
  const engines = { store: `sqlite:${folder.path}/events.db` };
  {
    await using platform = await banking({ engines });
    await assert.rejects(platform.handle({ tenant: 'demo-za', id: 'a', command }), (error) =>
      hasCode(error, 'TENANT_UNKNOWN'),
    );
  }
  {
    await using platform = await banking({ engines, tenants: ['core', 'demo-za'] });
    await platform.start();
    await platform.handle({ tenant: 'demo-za', id: 'a', command });
    await settled(platform);
    assert.deepEqual(await documentOf(platform, 'demo-za', 'a'), { owner: 'Ada' });
  }
  await using other = await banking({ engines });
  await other.handle({ tenant: 'demo-za', id: 'b', command });
  await assert.rejects(banking({ engines, tenants: ['demo'] }), (error) =>
    hasCode(error, 'TENANT_OVERLAP'),
  );
});

/** Appends as a KurrentDB client of another service does, with the tenant in the metadata. */
async function appendRaw(
  { engines, tokens }: Platform,
  stream: string,
  metadata: Record<string, unknown> | undefined,
): Promise<void> {
  const { tenants } = tokens;
  await using server = await startKurrentServer(engines.store, { port: 0, tenants });
  const client = KurrentDBClient.connectionString(`${server.url}&discoveryInterval=1`);
  const event = jsonEvent({
    id: randomUUID(),
    type: 'account.opened.v1',
    data: { owner: 'Eve' },
    ...(metadata === undefined ? {} : { metadata }),
  });
  await client.appendToStream(stream, event);
  await client.dispose();
}

const stream = 'banking.account.v1-acme-uk-GBP';

test('an event whose metadata contradicts the tenant of its stream is a dead letter of every handler', async () => {
  await using platform = await banking(kurrentStoreOptions);
  await appendRaw(platform, stream, { tenant: 'acme-uk' });
  await platform.start();
  const { deadLetters } = platform.engines.subscriptions;
  const handlers = ['accounts', 'greetings', 'outbox', 'welcome'].map(
    (name) => `sub:banking:${name}:v1`,
  );
  await until(async () => (await deadLetters.list({ stream })).length === handlers.length);
  const letters = await deadLetters.list({ stream });
  assert.deepEqual(letters.map(({ handler }) => handler).toSorted(), handlers);
  for (const { error, attempts } of letters) {
    assert.equal(attempts, 1);
    assert.match(error, /^TENANT_MISMATCH: .*'acme-uk'.*'acme'/);
  }
  assert.equal(await documentOf(platform, 'acme', 'uk-GBP'), undefined);
  assert.deepEqual(await platform.engines.outbox?.list({}), []);
});

test('a tenant of the directory owns its streams, whether the metadata names the tenant or not', async () => {
  await using platform = await banking({ ...kurrentStoreOptions, tenants: ['acme-uk'] });
  await appendRaw(platform, stream, { tenant: 'acme-uk' });
  await appendRaw(platform, 'banking.account.v1-acme-uk-EUR', undefined);
  await platform.start();
  await settled(platform);
  for (const id of ['GBP', 'EUR']) {
    assert.deepEqual(await documentOf(platform, 'acme-uk', id), { owner: 'Eve' }, id);
  }
  assert.deepEqual(await platform.engines.subscriptions.deadLetters.list({}), []);
});
