// The main module of the heartbeat thread: opens a separate connection and sends heartbeats at intervals.

import { parentPort, workerData } from 'node:worker_threads';
import { slept } from '../../foundation/async/slept.ts';
import { systemClock } from '../../foundation/clock.ts';
import type { BeatSettings } from './beat-thread.ts';
import type { BeatConnection } from '../task-engine.ts';

/** Enough time to load a driver and connect. */
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
      // Once per outage.
      if (!isFailing) parentPort?.postMessage({ failure });
      isFailing = true;
    }
    await slept(systemClock, everyMs, stopping.signal);
  }
}

// A claim marks its worker alive for a lease. Loading a driver is slow in a new process, so it happens after the
// first jobs, and long before the lease expires.
if (await slept(systemClock, everyMs - loadMs, stopping.signal)) await beatOn();
parentPort?.postMessage({ isOver: true });
