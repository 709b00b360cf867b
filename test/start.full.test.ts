// `millrace start` as a process: what `npm start` runs.

import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { jsonEvent, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { tellReaper } from '../src/testing/servers/reaper.ts';

const main = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-start-'));
});
after(() => rm(folder, { recursive: true, force: true }));

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly stop: (signal: NodeJS.Signals) => Promise<number | null>;
}

async function start(): Promise<Started> {
  const child = spawn(process.execPath, [main, 'start', '--kurrent-port', '0'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  tellReaper({ kind: 'process', pid: child.pid ?? 0, signal: 'SIGKILL' });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /kurrentdb:\S+/.exec(line)?.[0];
    if (url === undefined) continue;
    const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
      const ended = once(child, 'exit');
      child.kill(signal);
      const [code] = (await ended) as [number | null];
      tellReaper({ kind: 'process-ended', pid: child.pid ?? 0 });
      return code;
    };
    return { child, url: `${url}&discoveryInterval=1`, stop };
  }
  throw new Error('it ended before it listened');
}

test('what an official client appended is there after a stop and another start', async () => {
  const first = await start();
  const writer = KurrentDBClient.connectionString(first.url);
  const event = jsonEvent({ type: 'OrderPlaced', data: { amount: 12.5 } });
  await writer.appendToStream('order-1', event);
  await writer.dispose();
  assert.equal(await first.stop('SIGTERM'), 0);

  const second = await start();
  const reader = KurrentDBClient.connectionString(second.url);
  const found: unknown[] = [];
  for await (const { event: read } of reader.readStream('order-1')) found.push(read?.data);
  await reader.dispose();
  assert.deepEqual(found, [{ amount: 12.5 }]);
  assert.equal(await second.stop('SIGINT'), 0);
});

test('a port that is taken is told with what to do', async () => {
  const running = await start();
  const port = new URL(running.url).port;
  const child = spawn(process.execPath, [main, 'start', '--kurrent-port', port], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const [code] = (await once(child, 'exit')) as [number];
  assert.equal(code, 1);
  assert.match(errors, new RegExp(`SERVER_UNAVAILABLE.*:${port}`));
  await running.stop('SIGTERM');
});
