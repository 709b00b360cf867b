import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { coldStorageConformance } from '../testing/conformance/bus/cold-storage.ts';
import { fileColdStorage } from './file-cold-storage.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-cold-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const empty = (): string => join(mkdtempSync(join(folder, 'x-')), 'archive');

for (const { name, run } of coldStorageConformance(async () => fileColdStorage(empty()))) {
  test(`cold storage in a folder: ${name}`, run);
}

test('a name outside the folder is rejected', async () => {
  const storage = fileColdStorage(empty());
  await assert.rejects(() => storage.get('../other'), { code: 'BUS_INVALID' });
});

test('an incomplete file of an earlier run is not listed', async () => {
  const path = empty();
  const storage = fileColdStorage(path);
  await storage.put('a', Buffer.from('1'));
  writeFileSync(join(path, '.tmp-left'), 'half');
  assert.deepEqual(await Array.fromAsync(storage.list('')), ['a']);
});
