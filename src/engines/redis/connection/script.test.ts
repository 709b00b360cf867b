import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadScript } from './script.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const script = (path: string): string =>
  loadScript(new URL(path, new URL('..', import.meta.url))).lua;

test('inserts each included file once, before the code that follows the directive', () => {
  const lua = script('tasks/scripts/enqueue.lua');
  assert.doesNotMatch(lua, /@include/);
  assert.equal(lua.split('local function parseRecord').length, 2);
  assert.ok(lua.indexOf('local function parseRecord(') < lua.indexOf('local function addToLane('));
});

test('uses every Lua file', () => {
  const files = globSync('**/*.lua', { cwd: root }).toSorted();
  assert.ok(files.length > 50, `${files.length} files`);
  const included = new Set(
    files.flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/^-- @include "(.+)"$/gm)].map(
        ([, path = '']) => `${join(dirname(file), path)}.lua`,
      ),
    ),
  );
  for (const file of files.filter((each) => !included.has(each))) {
    const name = basename(file, '.lua').replaceAll(/-(\w)/g, (_, letter: string) =>
      letter.toUpperCase(),
    );
    const folder = join(root, dirname(file), basename(dirname(file)) === 'scripts' ? '..' : '.');
    const sources = globSync('*.ts', { cwd: folder }).map((each) =>
      readFileSync(join(folder, each), 'utf8'),
    );
    const isLoaded = sources.some(
      (text) => text.includes(`'${name}'`) || text.includes(basename(file)),
    );
    assert.ok(isLoaded, `no source loads ${file}`);
  }
});
