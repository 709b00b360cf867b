// Inside the thread: a connection of its own, and a beat again and again.

import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../foundation/clock.ts';
import type { BeatSettings } from './beat-thread.ts';
import type { BeatConnection } from '../task-engine.ts';

/** Ample for loading a driver and connecting. */
const loadMs = 2_000;

const { thread, worker, leaseMs, everyMs, about } = workerData as BeatSettings;
const stopping = new AbortController();
parentPort?.once('message', () => stopping.abort());

async function beatOn(): Promise<void> {
  const { openTaskBeat } = (await import(thread.module)) as {
    readonly openTaskBeat: (settings: unknown) => Promise<BeatConnection>;
  };
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
    await pause(everyMs);
  }
}

/** Ends early, and not as an error, when we are to stop. */
async function pause(ms: number): Promise<void> {
  await systemClock.sleep(ms, stopping.signal).catch(() => undefined);
}

// A claim says that its worker is alive for a lease. So what it takes to load a driver, which is much for
// a process that has just begun, comes after the first jobs, and long before the lease ends.
await pause(Math.max(0, everyMs - loadMs));
if (!stopping.signal.aborted) await beatOn();
parentPort?.postMessage({ isOver: true });
