// Inside the thread: a connection of its own, and a beat again and again.

import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../foundation/clock.ts';
import type { BeatSettings } from './beat-thread.ts';
import type { BeatConnection } from './task-engine.ts';

const { thread, worker, leaseMs, everyMs, about } = workerData as BeatSettings;
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());

const { openTaskBeat } = (await import(thread.module)) as {
  readonly openTaskBeat: (settings: unknown) => Promise<BeatConnection>;
};
{
  await using connection = await openTaskBeat(thread.settings);
  let isFailing = false;
  while (!stopping.signal.aborted) {
    try {
      await connection.beat({ worker, aliveUntilMs: systemClock.now() + leaseMs, about });
      isFailing = false;
    } catch (error) {
      const failure = error instanceof Error ? error.message : String(error);
      // Once for each time that the engine is away.
      if (!isFailing) parentPort?.postMessage({ failure });
      isFailing = true;
    }
    await systemClock.sleep(everyMs, stopping.signal).catch(() => undefined);
  }
}
parentPort?.postMessage({ isOver: true });
