// Runs `millrace dev` as a process: sample data, token, and the restart after a change.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startProduct } from './start-product.ts';

const source = (path: string): string => new URL(`../src/${path}`, import.meta.url).href;

const config = (note: string): string => `
import { createEnvelope } from '${source('contracts/index.ts')}';
import { defineConfig } from '${source('platform/index.ts')}';

console.log('${note}');
export default defineConfig({
  // The dev command ignores this URL: it uses its own file.
  engines: { store: 'postgres://127.0.0.1:1/production' },
  async samples({ engines }) {
    console.log('samples');
    const context = { tenant: 'core', aggregate: { bc: 'shop', type: 'order', id: '1' } };
    const placed = createEnvelope({ type: 'order.placed.v1', payload: { amount: 1 } }, context);
    await engines.store.append('shop.order.v1-core-1', [placed]);
    return [['printed once', 'a secret']];
  },
});
`;

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-dev-'));
});
after(() => rm(folder, { recursive: true, force: true }));

async function typesIn(base: string): Promise<readonly string[]> {
  const token = (await readFile(join(folder, '.millrace/dev.token'), 'utf8')).trim();
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${base}/api/v1/events`, { headers });
  assert.equal(response.status, 200);
  const { items } = (await response.json()) as { readonly items: readonly { type: string }[] };
  return items.map(({ type }) => type);
}

test('sample data is added once, a changed configuration restarts the server, and the token stays the same', async (t) => {
  const file = join(folder, 'millrace.config.ts');
  await writeFile(file, config('first configuration'));
  const product = await startProduct(folder, ['dev', '--no-kurrent']);
  // `millrace dev` starts child processes, which would outlive the test.
  t.after(() => product.signal('SIGTERM'));
  assert.deepEqual(await typesIn(product.base), ['order.placed.v1']);
  assert.match(product.said, /printed once +a secret/);
  assert.match(product.said, /curl -s .*\/api\/v1\/events/);
  const { token } = product;

  await writeFile(file, config('second configuration'));
  await product.whenPrinted('second configuration');
  await product.whenPrinted('Ctrl-C', 2);
  const base = [...product.output().matchAll(/http:\/\/\S+?(?=\s)/g)].at(-1)?.[0] ?? '';
  assert.deepEqual(await typesIn(/^http:\/\/[^/]+/.exec(base)?.[0] ?? ''), ['order.placed.v1']);
  assert.equal(product.output().split('samples\n').length, 2);
  assert.equal(product.output().split('a secret').length, 2);
  const kept = (await readFile(join(folder, '.millrace/dev.token'), 'utf8')).trim();
  assert.deepEqual([kept, /mr_/.test(product.output())], [token, false]);
  assert.equal(await product.stop('SIGTERM'), 0);

  const fresh = await startProduct(folder, ['dev', '--no-kurrent', '--no-watch', '--fresh']);
  await fresh.whenPrinted('samples');
  assert.deepEqual(await typesIn(fresh.base), ['order.placed.v1']);
  assert.notEqual(fresh.token, token);
  assert.equal(await fresh.stop('SIGTERM'), 0);
});
