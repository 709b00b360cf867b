// Reads along with the bucket into the index, over restarts of the server, and knows how far it is.

import { backoffMs } from '../../../foundation/backoff.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { StoredEntry } from '../../../bus/bus-engine.ts';
import { createBusReader } from '../bus/read.ts';
import { busUnavailable, type JetStreamWire } from '../connection/jetstream-wire.ts';
import type { TaskBucket } from './bucket.ts';
import type { TaskIndex } from './task-index.ts';
import { statePattern, taskKeys } from './keys.ts';

export interface TaskWatch extends AsyncDisposable {
  /** Everything that was written before the call, by whomever, is in the index. */
  sync(): Promise<void>;
  /** The bucket is another one: from its start. */
  begin(): void;
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
    readonly bucket: TaskBucket;
    readonly index: TaskIndex;
    readonly observer: Observer;
    readonly processId: string;
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
  let movedMs = performance.now();
  let asked: Promise<void> | undefined;

  function take(batch: readonly StoredEntry[]): void {
    for (const { subject, sequence, data } of batch) {
      seen = Number(sequence);
      index.apply(subject, seen, decoder.decode(data));
    }
    movedMs = performance.now();
    const reached = waiting.filter(({ seq }) => seq <= seen);
    if (reached.length > 0) waiting = waiting.filter(({ seq }) => seq > seen);
    for (const { resolve } of reached) resolve();
    onChange();
  }

  async function run(): Promise<void> {
    for (let failures = 0; !signal.aborted;) {
      try {
        const from = { position: String(seen) };
        const order = { from, isLive: true, signal, batchMax };
        for await (const batch of await reader.read(statePattern, order)) {
          failures = 0;
          take(batch);
        }
      } catch (err) {
        if (signal.aborted) return;
        failures += 1;
        observer.log?.warn({ err }, 'the bucket of tasks could not be read');
        await systemClock.sleep(backoffMs(backoff, failures), signal).catch(() => undefined);
      }
    }
  }

  async function reach(seq: number): Promise<void> {
    if (seen >= seq) return;
    const arrived = Promise.withResolvers<void>();
    const waits: Waiting = { seq, resolve: arrived.resolve, reject: arrived.reject };
    waiting.push(waits);
    const sinceMs = performance.now();
    const timer = setInterval(() => {
      // A long bucket may take its time, as long as it moves.
      if (performance.now() - Math.max(movedMs, sinceMs) < wire.timeoutMs) return;
      arrived.reject(busUnavailable('the bucket of tasks cannot be read'));
    }, 250);
    try {
      await arrived.promise;
    } finally {
      clearInterval(timer);
      waiting = waiting.filter((each) => each !== waits);
    }
  }

  async function askNow(): Promise<void> {
    await Promise.resolve();
    asked = undefined;
    const [seq] = await bucket.write([{ key: taskKeys.sync(processId), data: '1' }]);
    await reach(seq ?? 0);
  }

  const running = run();
  return {
    sync() {
      if (signal.aborted) return Promise.reject(closed());
      // Whoever asks in the same turn shares the question.
      asked ??= askNow();
      return asked;
    },
    begin() {
      seen = 0;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      for (const { reject } of waiting) reject(closed());
      await running;
    },
  };
}

function closed(): MillraceError {
  return new MillraceError('TASKS_CLOSED', 'the tasks were closed');
}
