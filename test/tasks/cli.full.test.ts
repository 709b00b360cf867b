// The command line on a folder with a file of task types.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

const folder = await mkdtemp(join(tmpdir(), 'millrace-tasks-cli-'));
after(() => rm(folder, { recursive: true, force: true }));
await writeFile(
  join(folder, 'tasks.yaml'),
  'task_types:\n  email-send:\n    workers: 4\n    step_timeout: 30s\n',
);

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const run = promisify(execFile);

async function millrace(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [main, 'tasks', ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '' },
  });
  return stdout;
}

test('a job is enqueued once, listed, shown with its timeline, cancelled and run again', async () => {
  const said = await millrace('enqueue', 'email-send', '{"to":"c-1"}', '--key', 'k', '--json');
  const { id } = JSON.parse(said) as { readonly id: string };
  assert.equal(await millrace('enqueue', 'email-send', '{}', '--key', 'k'), `was there ${id}\n`);
  assert.match(await millrace('list', '--state', 'queued'), new RegExp(`^${id} .* queued`));
  assert.match(await millrace('show', id), /payload +\{"to":"c-1"\}[\s\S]*\+0 ms {2}enqueued/);
  assert.match(await millrace('cancel', '--type', 'email-send', '--yes'), /^cancelled 1\n/);
  assert.match(await millrace('retry', id), /^due again 1\n/);
  assert.equal(await millrace('pause', 'email-send'), 'email-send is paused\n');
  assert.match(await millrace('types'), /^email-send {2}paused, 4 at once {2}1 queued\n/);
  await millrace('cancel', id);
  // It has ended: told at once, and the command ends.
  assert.match(await millrace('tail', id), /terminal .*"state":"cancelled"/);
});

test('monitors are told of every end once, go on where they were, and can be forgotten', async () => {
  const ended = async (text: Promise<string>): Promise<readonly unknown[]> =>
    (await text)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { readonly taskId: unknown }).taskId);
  const cancelled = async (): Promise<string> => {
    const said = await millrace('enqueue', 'email-send', '{}', '--json');
    const { id } = JSON.parse(said) as { readonly id: string };
    await millrace('cancel', id);
    return id;
  };
  await cancelled();
  const before = await ended(millrace('monitor', '--once', '--json'));
  const id = await cancelled();
  assert.ok(before.length > 0 && !before.includes(id));
  assert.deepEqual(await ended(millrace('monitor', '--once', '--json')), [id]);
  assert.deepEqual(await ended(millrace('monitor', '--once', '--json')), []);
  // Another group is another reader.
  const pager = await ended(millrace('monitor', '--group', 'pager', '--once', '--json'));
  assert.deepEqual(new Set(pager), new Set([...before, id]));
  assert.match(await millrace('groups'), /pager {2}gbe\.tasks\.\*\.terminal {2}0 behind, 0 held/);
  assert.equal(await millrace('monitor', '--group', 'pager', '--forget'), 'forgot pager\n');
  assert.doesNotMatch(await millrace('groups'), /pager/);
  assert.equal(
    await millrace('monitor', '--group', 'pager', '--forget'),
    'there is no group pager\n',
  );
});

test('what does not fit is told by the exit code', async () => {
  const code = (error: unknown) => (error as { readonly code: number }).code;
  await assert.rejects(millrace('enqueue', 'no-such-type', '{}'), (error) => code(error) === 1);
  await assert.rejects(millrace('enqueue', 'email-send', '{'), (error) => code(error) === 2);
  await assert.rejects(millrace('cancel', '--all'), (error) => code(error) === 2);
  await assert.rejects(millrace('list', '--state', 'gone'), (error) => code(error) === 2);
});
