// A job of a killed or frozen worker process is delivered to another process, on every engine with queues.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openEngineAt } from '../../src/platform/index.ts';
import { startChild } from '../../src/testing/child-process.ts';
import { sharedRedis } from '../../src/testing/servers/shared-servers.ts';
import type { WorkQueue } from '../../src/work/index.ts';
import { isText } from '../store/rig.ts';
import type { QueueWorkerInput } from './queue-worker-main.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-queue-kill-'));
after(() => rm(folder, { recursive: true, force: true }));
const { url: redisUrl } = await sharedRedis();

const script = new URL('./queue-worker-main.ts', import.meta.url);
/** Not a multiple of three, because engines renew at a third. */
const leaseMs = 500;

/** Runs until it has had one job, and delays that job. */
async function delayOne(queue: WorkQueue, name: string): Promise<readonly string[]> {
  const delivered: string[] = [];
  const stopping = new AbortController();
  const work = { queues: [name], concurrency: 1, signal: stopping.signal, leaseMs };
  await queue.work(async ({ id }) => {
    delivered.push(id);
    stopping.abort();
    return { delayMs: 3_600_000 };
  }, work);
  return delivered;
}

for (const [engine, url] of Object.entries({
  SQLite: `sqlite:${folder}/events.db`,
  Redis: redisUrl,
})) {
  const open = async () => {
    const handle = await openEngineAt(url);
    const queue = handle.queue ?? assert.fail('no queue');
    const name = `{${randomUUID()}}:mails`;
    await queue.add(name, [{ id: 'j-1', name: 'send', data: {} }]);
    const input: QueueWorkerInput = { url, queue: name, leaseMs };
    const child = startChild(script, { input });
    return {
      queue,
      name,
      child,
      async [Symbol.asyncDispose]() {
        await child.kill();
        await handle[Symbol.asyncDispose]();
      },
    };
  };

  test(`${engine}: the job of a killed worker is delivered to another one`, async () => {
    await using opened = await open();
    const { queue, name, child } = opened;
    await child.message(isText('started'));
    assert.equal(await queue.state(name, 'j-1'), 'active');
    await child.kill('SIGKILL');
    assert.deepEqual(await delayOne(queue, name), ['j-1']);
  });

  test(`${engine}: a frozen worker completes its job too late, which changes nothing`, async () => {
    await using opened = await open();
    const { queue, name, child } = opened;
    await child.message(isText('started'));
    process.kill(child.pid, 'SIGSTOP');
    assert.deepEqual(await delayOne(queue, name), ['j-1']);
    process.kill(child.pid, 'SIGCONT');
    child.send('complete');
    await child.message(isText('finished'));
    assert.equal(await queue.state(name, 'j-1'), 'delayed');
  });
}
