import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { runNodeScript, type NodeScript } from './node-script.ts';
import { isRunning } from './process-tree.ts';
import { createTempFolder, removeTempFolder } from './temp-folder.ts';

const startAll = `
  const [{ startNats }, { startPostgres }, { startRedis }, { startSmtp }] = await Promise.all([
    load('./nats-server.ts'),
    load('./postgres-server.ts'),
    load('./redis-server.ts'),
    load('./smtp-server.ts'),
  ]);
  const servers = await Promise.all([startNats(), startPostgres(), startRedis(), startSmtp()]);
  servers[2].pause();
  console.log(JSON.stringify(servers.map((server) => server.pid)));`;

const endings = [
  { how: 'kills itself', code: "process.kill(process.pid, 'SIGKILL')", ended: 'SIGKILL' },
  { how: 'calls process.exit', code: 'process.exit(3)', ended: 3 },
  { how: 'simply ends', code: '', ended: 0 },
];

for (const { how, code, ended } of endings) {
  test(`a process that ${how} leaves neither a server nor a folder`, async (t) => {
    await using temp = await tempFolder();
    const script = temp.run(`${startAll}\n${code}`);
    const pids = (await script.printed()) as number[];
    assert.equal(pids.length, 4);
    assert.equal(await script.ended, ended);
    await t.waitFor(() => assert.deepEqual(pids.filter(isRunning), []), { timeout: 60_000 });
    await whenEmpty(t, temp.folder);
  });
}

test('a process killed during the setup of a server leaves nothing', async (t) => {
  await using temp = await tempFolder();
  const script = temp.run(
    "const { startPostgres } = await load('./postgres-server.ts'); await startPostgres();",
  );
  // initdb is running: its folder exists, its last file does not exist yet.
  await t.waitFor(
    () => {
      const [folder = ''] = readdirSync(temp.folder);
      assert.ok(readdirSync(join(temp.folder, folder, 'data')).includes('base'));
    },
    { interval: 5, timeout: 60_000 },
  );
  script.kill('SIGKILL');
  assert.equal(await script.ended, 'SIGKILL');
  await whenEmpty(t, temp.folder);
});

interface TempFolder extends AsyncDisposable {
  readonly folder: string;
  run(code: string): NodeScript;
}

/** A folder for temporary folders, which separates the files of one script from those of the others. */
async function tempFolder(): Promise<TempFolder> {
  const folder = await createTempFolder('test');
  // If the test runs as root, the user of PostgreSQL needs access.
  await chmod(folder, 0o755);
  return {
    folder,
    run: (code) => runNodeScript(code, { ...process.env, TMPDIR: folder }),
    [Symbol.asyncDispose]: () => removeTempFolder(folder),
  };
}

function whenEmpty(t: TestContext, folder: string): Promise<void> {
  return t.waitFor(() => assert.deepEqual(readdirSync(folder), []), { timeout: 60_000 });
}
