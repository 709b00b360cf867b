import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundledChildrenFolder, childScript } from './bundled-children.ts';

const before = process.env[bundledChildrenFolder];
afterEach(() => {
  if (before === undefined) delete process.env[bundledChildrenFolder];
  else process.env[bundledChildrenFolder] = before;
});

test('a child runs its bundled script if there is one, else its source', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bundled-'));
  const one = new URL('one-main.ts', import.meta.url);
  const other = new URL('other-main.ts', import.meta.url);
  try {
    delete process.env[bundledChildrenFolder];
    assert.equal(childScript(one), fileURLToPath(one));
    process.env[bundledChildrenFolder] = folder;
    mkdirSync(join(folder, 'src', 'testing'), { recursive: true });
    const bundled = join(folder, 'src', 'testing', 'one-main.js');
    writeFileSync(bundled, '');
    assert.equal(childScript(one), bundled);
    assert.equal(childScript(other), fileURLToPath(other));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
