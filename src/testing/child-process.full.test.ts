import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { startChild } from './child-process.ts';
import { isRunning } from './servers/process-tree.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-child-'));
});
after(() => rm(folder, { recursive: true, force: true }));

/** A script that imports the helpers for child processes. */
async function script(name: string, code: string): Promise<URL> {
  const helpers = new URL('./child-process.ts', import.meta.url);
  const path = join(folder, `${name}.ts`);
  await writeFile(
    path,
    `import { childInput, startChild, tellParent } from '${helpers.href}';\n${code}`,
  );
  return pathToFileURL(path);
}

const isText =
  (text: string) =>
  (message: unknown): message is string =>
    message === text;

test('a child gets its input and exchanges messages', async () => {
  const echo = await script(
    'echo',
    `const { word } = childInput();
     process.on('message', (heard) => tellParent(word + ' ' + heard));
     tellParent('ready');`,
  );
  await using child = startChild(echo, { input: { word: 'echo:' } });
  await child.message(isText('ready'));
  child.send('one');
  await child.message(isText('echo: one'));
  // A late caller also gets the result.
  await child.message(isText('ready'));
  const all: unknown[] = [];
  child.onMessage((message) => all.push(message));
  assert.deepEqual(all, ['ready', 'echo: one']);
  assert.equal(await child.kill(), 'SIGKILL');
  assert.equal(isRunning(child.pid), false);
});

test('waiting for a message rejects with the error output if the child exits first', async () => {
  const broken = await script('broken', `childInput(); throw new Error('no such luck');`);
  await using child = startChild(broken);
  await assert.rejects(child.message(isText('ready')), /ended with 1[^]*no such luck/);
  assert.equal(await child.ended, 1);
});

test('killing the parent also ends its child', async () => {
  const idle = await script(
    'idle',
    `childInput(); tellParent('idle'); setInterval(() => {}, 1000);`,
  );
  const starter = await script(
    'starter',
    `childInput();
     const child = startChild(new URL('${idle.href}'));
     await child.message((message) => message === 'idle');
     tellParent({ pid: child.pid });`,
  );
  await using child = startChild(starter);
  const { pid } = await child.message(
    (message): message is { readonly pid: number } => typeof message === 'object',
  );
  assert.ok(isRunning(pid));
  await child.kill();
  const deadline = performance.now() + 120_000;
  while (isRunning(pid)) {
    assert.ok(performance.now() < deadline, 'the child is still running');
    await new Promise(setImmediate);
  }
});

test('a killed child leaves all modules that it had loaded to the compile cache', async () => {
  const cached = async (name: string, code: string): Promise<number> => {
    const cache = join(folder, `cache-${name}`);
    const ready = await script(name, `childInput(); ${code} tellParent('ready');`);
    await using child = startChild(ready, { env: { NODE_COMPILE_CACHE: cache } });
    await child.message(isText('ready'));
    await child.kill('SIGKILL');
    const entries = await readdir(cache, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).length;
  };
  await writeFile(join(folder, 'late.mts'), 'export const late: number = 1;');
  const without = await cached('eager', '');
  assert.ok(without > 1);
  assert.ok((await cached('lazy', `await import('./late.mts');`)) > without);
});
