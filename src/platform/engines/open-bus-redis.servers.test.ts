import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examineEngines, openBus } from 'millrace/platform';
import { startRedis } from 'millrace/testing';

test('opens a bus by the URL of a Redis server, and the doctor warns that this server may lose data', async () => {
  await using redis = await startRedis();
  await using bus = await openBus(redis.url);
  await bus.publish({ subject: 'gbe.events.audit.change', payload: 1 });
  assert.equal((await bus.stream('gbe.events.audit.change'))?.length, 1);

  const reports = await examineEngines({ store: 'memory:', bus: redis.url });
  const report = reports.find(({ roles }) => roles.includes('bus'));
  const finding = report?.findings.find(({ check }) => check === 'settings');
  assert.equal(finding?.level, 'warning');
  assert.match(finding?.detail ?? '', /appendonly no: a restart loses all data/);
  assert.match(finding?.remedy ?? '', /lost messages of the bus cannot be restored/);
});
