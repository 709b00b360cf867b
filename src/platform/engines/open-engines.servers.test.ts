import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRedis } from '../../testing/servers/redis-server.ts';
import { sharedNats, sharedPostgres } from '../../testing/servers/shared-servers.ts';
import { hasCode } from '../../foundation/error.ts';
import { examineEngines } from './examine-engines.ts';
import { createEngineSet, openEngineAt, openRole } from './open-engines.ts';

test('opens a bus by the URL of a NATS server, and rejects an unknown URL', async () => {
  const { url, prefix } = await sharedNats();
  await using bus = await openRole(url, 'bus');
  const subject = `${prefix}.events.api.error`;
  await bus.publish({ subject, payload: { n: 1 } });
  const [message] = await Array.fromAsync(bus.read(subject));
  assert.deepEqual(message?.payload, { n: 1 });
  await assert.rejects(openRole('http://h', 'bus'), (error) => hasCode(error, 'CONFIG_INVALID'));
});

test('opens a bus by the URL of a Redis server, and the doctor warns that this server may lose data', async () => {
  await using redis = await startRedis();
  await using bus = await openRole(redis.url, 'bus');
  await bus.publish({ subject: 'gbe.events.audit.change', payload: 1 });
  assert.equal((await bus.stream('gbe.events.audit.change'))?.length, 1);

  const reports = await examineEngines({ store: 'memory:', bus: redis.url });
  const report = reports.find(({ roles }) => roles.includes('bus'));
  const finding = report?.findings.find(({ check }) => check === 'settings');
  assert.equal(finding?.level, 'warning');
  assert.match(finding?.detail ?? '', /appendonly no: a restart loses all data/);
  assert.match(finding?.remedy ?? '', /lost messages of the bus cannot be restored/);
});

test('the outbox of a PostgreSQL database alone creates only its own schema', async () => {
  const { url } = await sharedPostgres();
  await using outbox = await openRole(url, 'outbox');
  assert.equal((await outbox.counts()).PENDING, 0);
  await using db = await openEngineAt(url, { migrate: 'off' });
  await assert.rejects(
    async () => db.store?.streamInfo('banking.currency.v1-core-USD'),
    (error) => hasCode(error, 'STORE_UNAVAILABLE') || /schema|relation/.test(String(error)),
  );
});

test('store and outbox of one PostgreSQL database share a handle and commit together', async () => {
  const { url } = await sharedPostgres();
  await using set = createEngineSet({
    urls: { store: `${url}?schema=shop`, outbox: url },
    needs: { store: 'required', outbox: 'required' },
  });
  assert.equal(await set.handleOf('store'), await set.handleOf('outbox'));
  const { database } = await set.open('subscriptions');
  assert.ok(database !== undefined && database === (await set.open('outbox')).database);
});

test('a PostgreSQL schema of a newer version is rejected, whichever role is opened', async () => {
  const { url } = await sharedPostgres();
  const { default: pg } = await import('pg');
  for (const [role, schema] of [
    ['store', 'millrace'],
    ['outbox', 'core_outbox'],
  ] as const) {
    await (await openRole(url, role))[Symbol.asyncDispose]();
    const client = new pg.Client(url);
    await client.connect();
    await client.query(`insert into ${schema}.migrations (number, title) values (999, 'tomorrow')`);
    await client.end();
    await assert.rejects(
      openRole(url, role),
      (error) => hasCode(error, 'CONFIG_INVALID') && /newer version/.test(error.message),
    );
  }
});
