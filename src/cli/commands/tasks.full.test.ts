// The tasks commands in a folder with a file of task types.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { createPaint } from '../terminal/paint.ts';
import { runCli } from '../run-cli.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-tasks-cli-'));
after(() => rm(folder, { recursive: true, force: true }));
await writeFile(
  join(folder, 'tasks.yaml'),
  'task_types:\n  email-send:\n    workers: 4\n    step_timeout: 30s\n',
);

interface Run {
  readonly exitCode: number;
  readonly stdout: string;
}

/** Runs in this process, because each new process would load the whole tree. */
async function run(...args: readonly string[]): Promise<Run> {
  let stdout = '';
  const exitCode = await runCli({
    args: ['tasks', ...args],
    stdout: { write: (text) => (stdout += text), isTTY: false },
    stderr: { write: () => undefined, isTTY: false },
    stdin: () => Readable.from([]),
    env: {},
    signal: new AbortController().signal,
    cwd: folder,
    isTTY: false,
    paint: createPaint(false),
    debug: false,
  });
  return { exitCode, stdout };
}

async function millrace(...args: readonly string[]): Promise<string> {
  const { exitCode, stdout } = await run(...args);
  assert.equal(exitCode, 0, args.join(' '));
  return stdout;
}

test('a separate process exits with the exit code of its command', async () => {
  const main = new URL('../main.ts', import.meta.url).pathname;
  const options = { cwd: folder, env: { PATH: process.env['PATH'] ?? '' } };
  const inProcess = (...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [main, 'tasks', ...args], options);
  assert.equal((await inProcess('list')).stdout, '');
  await assert.rejects(inProcess('cancel', '--all'), { code: 2 });
});

test('enqueues a job once, lists it, shows its timeline, cancels and retries it', async () => {
  const output = await millrace('enqueue', 'email-send', '{"to":"c-1"}', '--key', 'k', '--json');
  const { id } = JSON.parse(output) as { readonly id: string };
  assert.equal(await millrace('enqueue', 'email-send', '{}', '--key', 'k'), `duplicate of ${id}\n`);
  assert.match(await millrace('list', '--state', 'queued'), new RegExp(`^${id} .* queued`));
  assert.match(await millrace('show', id), /payload +\{"to":"c-1"\}[\s\S]*\+0 ms {2}enqueued/);
  assert.match(await millrace('cancel', '--type', 'email-send', '--yes'), /^cancelled 1\n/);
  assert.match(await millrace('retry', id), /^due again 1\n/);
  assert.equal(await millrace('pause', 'email-send'), 'email-send is paused\n');
  assert.match(await millrace('types'), /^email-send {2}paused, concurrency 4 {2}1 queued\n/);
  await millrace('cancel', id);
  // The job has ended: tail prints its result and exits.
  assert.match(await millrace('tail', id), /terminal .*"state":"cancelled"/);
});

test('monitor prints each result once per group, resumes, and deletes the group', async () => {
  const ended = async (text: Promise<string>): Promise<readonly unknown[]> =>
    (await text)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { readonly taskId: unknown }).taskId);
  const cancelled = async (): Promise<string> => {
    const output = await millrace('enqueue', 'email-send', '{}', '--json');
    const { id } = JSON.parse(output) as { readonly id: string };
    await millrace('cancel', id);
    return id;
  };
  await cancelled();
  const before = await ended(millrace('monitor', '--once', '--json'));
  const id = await cancelled();
  assert.ok(before.length > 0 && !before.includes(id));
  assert.deepEqual(await ended(millrace('monitor', '--once', '--json')), [id]);
  assert.deepEqual(await ended(millrace('monitor', '--once', '--json')), []);
  // Another group reads all results again.
  const pager = await ended(millrace('monitor', '--group', 'pager', '--once', '--json'));
  assert.deepEqual(new Set(pager), new Set([...before, id]));
  assert.match(
    await millrace('groups'),
    /pager {2}gbe\.tasks\.\*\.terminal {2}0 behind, 0 unacknowledged/,
  );
  assert.equal(await millrace('monitor', '--group', 'pager', '--forget'), 'deleted group pager\n');
  assert.doesNotMatch(await millrace('groups'), /pager/);
  assert.equal(
    await millrace('monitor', '--group', 'pager', '--forget'),
    "unknown group 'pager'\n",
  );
});

test('a failed command sets the exit code', async () => {
  const exitCode = async (...args: readonly string[]) => (await run(...args)).exitCode;
  assert.equal(await exitCode('enqueue', 'no-such-type', '{}'), 1);
  assert.equal(await exitCode('enqueue', 'email-send', '{'), 2);
  assert.equal(await exitCode('cancel', '--all'), 2);
  assert.equal(await exitCode('list', '--state', 'gone'), 2);
});

test('rejects arguments of lists without a filter', async () => {
  for (const command of ['types', 'workers', 'groups']) {
    assert.equal((await run(command, 'email-send')).exitCode, 2, command);
  }
});
