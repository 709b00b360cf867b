// Follows the bucket and updates the index, across restarts of the server.

import { slept } from '../../../foundation/async/slept.ts';
import { backoffMs } from '../../../foundation/backoff.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { closedError } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { StoredEntry } from '../../../bus/bus-engine.ts';
import { createBusReader } from '../bus/read.ts';
import type { Bucket } from '../connection/bucket.ts';
import { natsUnavailable } from '../connection/connection.ts';
import type { JetStreamWire } from '../connection/jetstream-wire.ts';
import type { TaskIndex } from './task-index.ts';
import { isAboutProcess, statePattern, taskKeys } from './keys.ts';

export interface TaskWatch extends AsyncDisposable {
  /** Resolves when the index has everything that any process wrote before the call. The first call starts the reader. */
  sync(): Promise<void>;
  /** Reads the bucket from its start, after it was created again. */
  restart(): void;
}

interface Waiting {
  readonly seq: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const batchMax = 1_000;
const backoff = { initialMs: 100, factor: 2, capMs: 5_000, jitterMs: 100, attemptsMax: Infinity };

export function createTaskWatch(
  wire: JetStreamWire,
  parts: {
    readonly bucket: Bucket;
    readonly index: TaskIndex;
    readonly observer: Observer;
    readonly processId: string;
    /** Called when jobs, modes, rates or slots have changed. */
    readonly onChange: () => void;
  },
): TaskWatch {
  const { bucket, index, observer, processId, onChange } = parts;
  const reader = createBusReader({ wire, layout: bucket.layout, observer }, bucket.streams);
  const stopping = new AbortController();
  const { signal } = stopping;
  const decoder = new TextDecoder();
  let waiting: Waiting[] = [];
  let seen = 0;
  let progressedAtMs = performance.now();
  let syncing: Promise<void> | undefined;
  let running: Promise<void> | undefined;

  function take(batch: readonly StoredEntry[]): void {
    for (const { subject, sequence, data } of batch) {
      seen = Number(sequence);
      index.apply(subject, seen, decoder.decode(data));
    }
    progressedAtMs = performance.now();
    const reached = waiting.filter(({ seq }) => seq <= seen);
    if (reached.length > 0) waiting = waiting.filter(({ seq }) => seq > seen);
    for (const { resolve } of reached) resolve();
    if (batch.some(({ subject }) => !isAboutProcess(subject))) onChange();
  }

  async function run(): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      try {
        const from = { position: String(seen) };
        const request = { from, isLive: true, signal, batchMax };
        for await (const batch of await reader.read(statePattern, request)) {
          failures = 0;
          take(batch);
        }
      } catch (err) {
        if (signal.aborted) return;
        failures += 1;
        observer.log?.warn({ err }, 'could not read the task bucket');
        await slept(systemClock, backoffMs(backoff, failures), signal);
      }
    }
  }

  async function reach(seq: number): Promise<void> {
    if (seen >= seq) return;
    const arrived = Promise.withResolvers<void>();
    const waiter: Waiting = { seq, resolve: arrived.resolve, reject: arrived.reject };
    waiting.push(waiter);
    const sinceMs = performance.now();
    const timer = setInterval(() => {
      // Reading a large bucket may take long, so only a lack of progress is an error.
      if (performance.now() - Math.max(progressedAtMs, sinceMs) < wire.timeoutMs) return;
      arrived.reject(natsUnavailable('the task bucket cannot be read'));
    }, 250);
    try {
      await arrived.promise;
    } finally {
      clearInterval(timer);
      waiting = waiting.filter((each) => each !== waiter);
    }
  }

  async function syncNow(): Promise<void> {
    await Promise.resolve();
    syncing = undefined;
    const [seq] = await bucket.write([{ key: taskKeys.sync(processId), data: '1' }]);
    await reach(seq ?? 0);
  }

  return {
    sync() {
      if (signal.aborted) return Promise.reject(closedError('TASKS'));
      running ??= run();
      // Calls in the same turn of the event loop share one request.
      syncing ??= syncNow();
      return syncing;
    },
    restart() {
      seen = 0;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      for (const { reject } of waiting) reject(closedError('TASKS'));
      await running;
    },
  };
}
