import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { text } from 'node:stream/consumers';
import type { StreamResponse } from '../../platform/modules/route.ts';
import { consolePages } from './console-pages.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-pages-'));
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), '<script src="./assets/main-1.js"></script>');
  await writeFile(join(folder, 'assets', 'main-1.js'), 'plain');
  await writeFile(join(folder, 'assets', 'main-1.js.br'), 'brotli');
  await writeFile(join(folder, 'assets', 'main-1.js.gz'), 'gzip');
  await writeFile(join(folder, 'secret.js'), 'secret');
});
after(() => rm(folder, { recursive: true, force: true }));

const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

async function page(path: string, headers: Readonly<Record<string, string>> = browser) {
  const response = (await consolePages({ folder })(path, headers)) as StreamResponse | undefined;
  if (response === undefined) return undefined;
  const { status = 200, headers: sent = {} } = response;
  return { status, headers: sent, text: await text(response.stream) };
}

test('browsers are sent to the console, and programs get no page', async () => {
  assert.deepEqual((await page('/'))?.headers, { location: 'console/' });
  assert.deepEqual((await page('/console'))?.headers, { location: 'console/' });
  for (const accept of ['application/json', '*/*', '']) {
    assert.equal(await page('/', { accept }), undefined);
    assert.equal(await page('/console/events', { accept }), undefined);
  }
  assert.equal(await page('/other'), undefined);
});

test('every path below /console/ is the page, with addresses relative to the path', async () => {
  const cases = {
    '/console/': './',
    '/console/events': './',
    '/console/traces/a': '../',
    '/console/traces/a/b': '../../',
  };
  for (const [path, prefix] of Object.entries(cases)) {
    assert.equal((await page(path))?.text, `<script src="${prefix}assets/main-1.js"></script>`);
  }
});

test('the policy of the page allows only files of this server', async () => {
  const policy = (await page('/console/'))?.headers['content-security-policy'] ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/);
  assert.equal(/unsafe|\*|https?:/.test(policy), false);
});

test('assets are served compressed and are immutable', async () => {
  const path = '/console/assets/main-1.js';
  const accepted = { 'gzip, deflate, br': 'brotli', gzip: 'gzip', identity: 'plain' };
  for (const [encoding, content] of Object.entries(accepted)) {
    const found = await page(path, { 'accept-encoding': encoding });
    assert.equal(found?.text, content);
    assert.equal(found.headers['cache-control'], 'public, max-age=31536000, immutable');
    assert.equal(found.headers['content-length'], String(content.length));
  }
  for (const name of ['../secret.js', '..%2fsecret.js', 'main-2.js', '', 'main-1.js.br']) {
    assert.equal(await page(`/console/assets/${name}`), undefined, name);
  }
});

test('without a build the page names the command that builds it', async () => {
  const missing = consolePages({ folder: join(folder, 'none') });
  const response = (await missing('/console/', browser)) as StreamResponse;
  assert.equal(response.status, 503);
  assert.match(await text(response.stream), /npm run console:build/);
});
