// `millrace start` with engines that lack a role: what is off, what lands in a local file, and what is refused.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startStandIn } from '../src/testing/kurrent-stand-in/stand-in.ts';
import { sharedPostgres, sharedRedis } from '../src/testing/servers/shared-servers.ts';
import { spawnMillrace } from './cli-store-terminal.ts';
import { startProduct } from './start-product.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-roles-'));
after(() => rm(folder, { recursive: true, force: true }));
const source = (path: string): string => new URL(`../src/${path}`, import.meta.url).href;

/** A module that uses the bus. */
const config = `
import { defineConfig, defineModule } from '${source('platform/index.ts')}';
export default defineConfig({ modules: [defineModule({ name: 'shop', uses: ['bus'] })] });
`;

test('on PostgreSQL alone the product starts, and roles without an engine are off', async () => {
  const { url } = await sharedPostgres();
  const cwd = await mkdtemp(join(folder, 'off-'));
  const product = await startProduct(cwd, ['start', '--store', url]);
  assert.match(product.said, /^off +key store, bus, tasks, work queues$/m);
  const headers = { authorization: `Bearer ${product.token ?? ''}` };
  const response = await fetch(`${product.base}/api/v1/admin/system`, { headers });
  const { roles } = (await response.json()) as {
    readonly roles: readonly { readonly role: string; readonly engine?: string }[];
  };
  const engines = Object.fromEntries(roles.map(({ role, engine = 'off' }) => [role, engine]));
  assert.equal(engines['outbox'], 'PostgreSQL');
  assert.equal(engines['bus'], 'off');
  assert.equal(await product.stop('SIGINT'), 0);
  const written = await readdir(join(cwd, '.millrace'));
  assert.deepEqual(
    [await readdir(cwd), written.toSorted()],
    [['.millrace'], ['admin.token', 'tls']],
  );
});

test('on EventStoreDB and Redis alone the product starts in production, without a local file', async () => {
  await using server = await startStandIn({ preset: '24.10' });
  const { url } = await sharedRedis();
  const cwd = await mkdtemp(join(folder, 'esdb-'));
  const env = { NODE_ENV: 'production', MILLRACE_KEYS: url };
  const store = server.url.replace('kurrentdb:', 'esdb:');
  const args = ['start', '--no-kurrent', '--store', store];
  const product = await startProduct(cwd, args, 'Ctrl-C', env);
  assert.match(product.said, /^Redis +redis:\/\/\S+ .*checkpoints, snapshots, /m);
  assert.match(product.said, /^off +trace index, outbox$/m);
  const headers = { authorization: `Bearer ${product.token ?? ''}` };
  const response = await fetch(`${product.base}/api/v1/admin/system`, { headers });
  const { roles } = (await response.json()) as {
    readonly roles: readonly { readonly role: string; readonly engine?: string }[];
  };
  const engines = Object.fromEntries(roles.map(({ role, engine = 'off' }) => [role, engine]));
  assert.deepEqual(
    [engines['store'], engines['subscriptions'], engines['snapshots'], engines['leases']],
    ['KurrentDB', 'Redis', 'Redis', 'Redis'],
  );
  const doctor = await spawnMillrace(['doctor', '--json', '--store', store], { cwd, env });
  const report = JSON.parse(doctor.stdout) as {
    readonly roles: readonly { readonly role: string; readonly engine?: string }[];
  };
  assert.equal(report.roles.find(({ role }) => role === 'subscriptions')?.engine, 'Redis');
  assert.equal(await product.stop('SIGINT'), 0);
  assert.deepEqual(
    (await readdir(join(cwd, '.millrace'))).filter((name) => name.endsWith('.db')),
    [],
  );
});

test('a role that a module uses lands in a local file with a warning, and is refused in production', async () => {
  const { url } = await sharedPostgres();
  const cwd = await mkdtemp(join(folder, 'local-'));
  await writeFile(join(cwd, 'millrace.config.ts'), config);
  const product = await startProduct(cwd, ['start', '--no-kurrent', '--store', url]);
  assert.match(product.said, /warning +PostgreSQL has no bus\. A local file.*MILLRACE_BUS/);
  const ready = await (await fetch(`${product.base}/health/ready`)).json();
  assert.match(JSON.stringify(ready), /"role bus":.*MILLRACE_BUS/);
  const headers = { authorization: `Bearer ${product.token ?? ''}` };
  const system = await fetch(`${product.base}/api/v1/admin/system`, { headers });
  const { roles } = (await system.json()) as { readonly roles: unknown };
  const doctor = await spawnMillrace(['doctor', '--json', '--store', url], { cwd });
  assert.deepEqual((JSON.parse(doctor.stdout) as { readonly roles: unknown }).roles, roles);
  const [table = ''] = /^engine +URL.*\n(?:.+\n)+/m.exec(product.said) ?? [];
  assert.match(table, /^SQLite +sqlite:\.millrace\/local\.db .* bus$/m);
  const { stdout: text } = await spawnMillrace(['doctor', '--store', url], { cwd });
  assert.ok(text.includes(table), 'the doctor prints the table of the banner');
  assert.equal(await product.stop('SIGINT'), 0);
  const env = { NODE_ENV: 'production' };
  const refused = await spawnMillrace(['start', '--port', '0', '--no-kurrent', '--store', url], {
    cwd,
    env,
  });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^CONFIG_INVALID: PostgreSQL has no bus\..*set MILLRACE_BUS/m);
});
