// The example worker in Python against the real server: it is killed in its second step and restarted.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { createPlatform } from '../../src/platform/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { taskType } from '../../src/tasks/index.ts';

const script = new URL('../../examples/python-worker/worker.py', import.meta.url);

function startPython(env: Readonly<Record<string, string>>) {
  const child = spawn('python3', [script.pathname], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on('line', (line) => lines.push(line));
  return {
    lines,
    async whenPrinted(word: string) {
      while (!lines.some((line) => line.startsWith(word))) await once(reader, 'line');
    },
    async kill() {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

test('a Python worker that was killed resumes after its finished step', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-python-'));
  try {
    await using platform = await createPlatform({
      engines: { store: `sqlite:${folder}/events.db` },
      taskTypes: [
        taskType('email-send', {
          backoff: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 },
        }),
      ],
      taskSweepEveryMs: 100,
    });
    await platform.start();
    await using api = await startApi(platform, { port: 0 });
    const { secret } = await platform.tokens.create({ name: 'python', scopes: ['work'] });
    const env = { MILLRACE_URL: api.url, MILLRACE_TOKEN: secret, MILLRACE_LEASE_MS: '900' };
    const tasks = await platform.tasks();
    const { id } = await tasks.enqueue({
      type: 'email-send',
      payload: { to: 'c-1', seconds: 3 },
      tenant: 'core',
    });
    const first = startPython(env);
    await first.whenPrinted('send');
    await first.kill();
    const second = startPython(env);
    try {
      const ended = await tasks.whenEnded(id, { timeoutMs: 60_000 });
      assert.equal(ended.state, 'completed');
      assert.deepEqual(ended.result, { text: 'Hello, c-1', sent: true });
      assert.equal(ended.failures, 1);
      const ran = [...first.lines, ...second.lines].filter((line) => line.endsWith(id));
      assert.deepEqual(ran, [`render ${id}`, `send ${id}`, `send ${id}`]);
      const whats = (await tasks.timeline(id)).map(({ what }) => what);
      assert.ok(whats.includes('lost'), whats.join(', '));
    } finally {
      await second.kill();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
