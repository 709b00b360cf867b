// The list of running processes: two processes of one deployment, of which one is killed.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { packageVersion } from '../src/cli/package-version.ts';
import { until } from '../src/testing/support/server/api-rig.ts';
import { startProduct } from './start-product.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-processes-'));
after(() => rm(folder, { recursive: true, force: true }));
const source = (path: string): string => new URL(`../src/${path}`, import.meta.url).href;
const config = `
import { defineConfig } from '${source('platform/index.ts')}';
export default defineConfig({ leaseMs: 2_000 });
`;

interface Listed {
  readonly id: string;
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
  readonly roles: readonly string[];
  readonly startedAt?: string;
  readonly heardAt?: string;
  readonly taskTypes?: readonly string[];
  readonly isThis: boolean;
}

test('lists servers and workers of a deployment, and forgets a killed process with its lease', async () => {
  await writeFile(join(folder, 'millrace.config.ts'), config);
  const start = ['start', '--no-kurrent', '--store', 'sqlite:shared.db'];
  const server = await startProduct(folder, start);
  const headers = {
    authorization: `Bearer ${server.token ?? ''}`,
    'content-type': 'application/json',
  };
  const list = async (): Promise<readonly Listed[]> => {
    const response = await fetch(`${server.base}/admin/processes`, { headers });
    assert.equal(response.status, 200, await response.clone().text());
    return ((await response.json()) as { readonly items: readonly Listed[] }).items;
  };
  const worker = await startProduct(folder, [...start, '--roles', 'api,sweepers']);
  await until(async () => (await list()).length === 2);
  const [first, second] = await list();
  assert.ok(first !== undefined && second !== undefined);
  assert.deepEqual(
    [first, second].map((each) => [each.host, each.version, each.isThis]),
    [
      [hostname(), packageVersion(), true],
      [hostname(), packageVersion(), false],
    ],
  );
  assert.deepEqual(second.roles, ['api', 'sweepers']);
  assert.notEqual(first.pid, second.pid);
  for (const { startedAt = '', heardAt = '' } of [first, second]) {
    assert.ok(Date.parse(startedAt) <= Date.parse(heardAt), `${startedAt}, ${heardAt}`);
  }

  // The id of a process is the owner of its shards.
  const name = 'sub:millrace:traces:v1';
  const owned = await fetch(`${server.base}/admin/subscriptions/${name}`, { headers });
  assert.equal(owned.status, 200, await owned.clone().text());
  const { shards } = (await owned.json()) as { readonly shards: readonly { owner?: string }[] };
  assert.deepEqual([...new Set(shards.map(({ owner }) => owner))], [first.id]);

  // A worker in another language says about itself what it wants.
  const beat = await fetch(`${server.base}/api/v1/worker/heartbeat`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ worker: 'go-1', tokens: [], about: { host: 'box', types: ['a'] } }),
  });
  assert.equal(beat.status, 200, await beat.text());
  const other = (await list()).find(({ host }) => host === 'box');
  assert.deepEqual([other?.roles, other?.taskTypes], [['workers'], ['a']]);

  worker.signal('SIGKILL');
  await worker.ended;
  await until(async () => (await list()).every(({ pid }) => pid !== second.pid));
  assert.ok((await list()).some(({ isThis }) => isThis));
  assert.equal(await server.stop('SIGINT'), 0);
});
