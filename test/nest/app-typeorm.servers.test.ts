import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { until } from '../store/rig.ts';
import { appCases, post, type AppEngines } from './app-cases.ts';
import { compileApp } from './compile-app.ts';

const compiled = await compileApp();

async function newEngines(): Promise<AppEngines> {
  const { url } = await sharedPostgres();
  return { store: url, database: url };
}

appCases('postgres', compiled, newEngines);

test('postgres: TypeORM commits an order and its message together, or neither', async () => {
  await using receiver = await startHttpReceiver();
  const app = await compiled.createApp({ ...(await newEngines()), receiver: receiver.url });
  try {
    const url = `${await app.getUrl()}/orders`;
    const sent = async (id: string): Promise<string> =>
      (await fetch(`${url}/sent?stream=orders-${id}`)).text();
    assert.equal((await post(url, { id: 'o1', isDeclined: true })).status, 409);
    assert.equal((await post(url, { id: 'o2' })).status, 201);
    await until('the message of the second order is sent', async () => (await sent('o2')) === '1');
    assert.deepEqual(
      receiver.requests.map(({ headers }) => headers['idempotency-key']),
      ['o2-paid'],
    );
    assert.equal(await (await fetch(url)).text(), '1');
    assert.equal(await sent('o1'), '0');
  } finally {
    await app.close();
  }
});
