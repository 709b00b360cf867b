// A process with one worker of a queue. It reports the job that it has started, and completes it after a message of the test.

import { once } from 'node:events';
import { openEngineAt } from '../../src/platform/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface QueueWorkerInput {
  readonly url: string;
  readonly queue: string;
  readonly leaseMs: number;
}

const { url, queue: name, leaseMs } = childInput() as QueueWorkerInput;
const { queue } = await openEngineAt(url);
const stopping = new AbortController();
await queue?.work(
  async () => {
    tellParent('started');
    await once(process, 'message');
    stopping.abort();
    return undefined;
  },
  { queues: [name], concurrency: 1, signal: stopping.signal, leaseMs },
);
tellParent('finished');
