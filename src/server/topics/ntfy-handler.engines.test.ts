// Runs the cases of ntfy's API against the real ntfy, which is the reference, and ntfy's command line
// against our server.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createTempFolder, removeTempFolder } from '../../testing/servers/temp-folder.ts';
import { newTopic, poll, type Message } from '../../testing/support/topics/ntfy-case.ts';
import { ntfyCases } from '../../testing/support/topics/ntfy-cases.ts';
import { startOurNtfy, type OurNtfy } from '../../testing/support/topics/our-ntfy.ts';
import {
  ntfyProgram,
  startNtfy,
  type NtfyServerProcess,
} from '../../testing/support/topics/ntfy-server.ts';

const program = ntfyProgram();
const skip = program === undefined ? 'ntfy was not downloaded' : false;
const run = promisify(execFile);

describe('ntfy itself', { skip, concurrency: 4 }, () => {
  let server: NtfyServerProcess;
  before(async () => {
    server = await startNtfy(program ?? '');
  });
  after(() => server[Symbol.asyncDispose]());

  for (const { title, run: runCase } of ntfyCases) it(title, () => runCase(server));
});

describe("ntfy's command line on our server", { skip }, () => {
  const opened = new AsyncDisposableStack();
  let ours: OurNtfy;
  let folder: string;
  before(async () => {
    folder = await createTempFolder('notify');
    opened.defer(() => removeTempFolder(folder));
    ours = opened.use(await startOurNtfy({ folder }));
  });
  after(() => opened.disposeAsync());
  // Otherwise ntfy would read the configuration of the current user.
  const env = (): NodeJS.ProcessEnv => ({ ...process.env, HOME: folder, XDG_CONFIG_HOME: folder });
  const ntfy = async (...args: readonly string[]): Promise<string> => {
    const running = run(program ?? '', [...args], { env: env(), timeout: 30_000 });
    // ntfy would take its standard input for the message.
    running.child.stdin?.end();
    return (await running).stdout;
  };

  it('publishes a message with title, priority, tags and click URL', async () => {
    const topic = newTopic();
    const flags = [
      '--title',
      'Tüt',
      '--priority',
      'high',
      '--tags',
      'a,b',
      '--click',
      'https://e.x',
    ];
    await ntfy('publish', ...flags, `${ours.url}/${topic}`, 'hello');
    const [message] = await poll(ours, topic);
    const { title, message: text } = message ?? {};
    assert.deepEqual([title, text], ['Tüt', 'hello']);
  });

  it('publishes with the credentials of a user', async () => {
    const topic = `closed-ben-${newTopic()}`;
    const flags = ['--user', 'ben:benpass'];
    await ntfy('publish', ...flags, `${ours.url}/${topic}`, 'x');
    const rejected = ntfy('publish', `${ours.url}/${topic}`, 'x');
    await assert.rejects(rejected, /forbidden/);
  });

  it('publishes files, and rejects one that is too large', async () => {
    const topic = newTopic();
    const flags = ['--file', program ?? '', '--filename', 'program'];
    const sending = ntfy('publish', ...flags, `${ours.url}/${topic}`);
    await assert.rejects(sending, /attachment too large/);
    await ntfy('publish', '--file', import.meta.filename, `${ours.url}/${topic}`);
    const [message] = await poll(ours, topic);
    assert.ok((message?.attachment?.size ?? 0) > 1_000);
  });

  it('polls the stored messages of a topic', async () => {
    const topic = newTopic();
    await ntfy('publish', `${ours.url}/${topic}`, 'one');
    await ntfy('publish', `${ours.url}/${topic}`, 'two');
    const stdout = await ntfy('subscribe', '--poll', `${ours.url}/${topic}`);
    const messages = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as Message).message);
    assert.deepEqual(messages, ['one', 'two']);
  });

  it('follows a topic', async () => {
    const topic = newTopic();
    await ntfy('publish', `${ours.url}/${topic}`, 'before');
    const reader = spawn(program ?? '', ['subscribe', '--since', 'all', `${ours.url}/${topic}`], {
      env: env(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const received: (string | undefined)[] = [];
    for await (const line of createInterface({ input: reader.stdout })) {
      received.push((JSON.parse(line) as Message).message);
      if (received.length === 2) break;
      await ntfy('publish', `${ours.url}/${topic}`, 'after');
    }
    reader.kill('SIGKILL');
    await once(reader, 'exit');
    assert.deepEqual(received, ['before', 'after']);
  });
});
