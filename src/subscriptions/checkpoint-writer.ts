// Writes the checkpoint in groups: after so many events, or a moment after the first of them.

import type { Clock } from '../foundation/clock.ts';
import type { Position } from '../store/position.ts';
import { slept } from './deadline.ts';

export interface CheckpointWriterOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly every: number;
  readonly afterMs: number;
  readonly position: () => Position | undefined;
  /** What must be in the database before the checkpoint may pass it. */
  readonly beforeSave: () => Promise<void>;
  readonly save: (position: Position) => Promise<void>;
  /** Also told of what will be tried again. */
  readonly onFailure: (error: unknown) => void;
}

export interface CheckpointWriter {
  /** Something is done. */
  note(): void;
  /** Writes the last one; rejects when it could not. */
  finish(): Promise<void>;
  stop(): void;
}

export function createCheckpointWriter(options: CheckpointWriterOptions): CheckpointWriter {
  const { clock, signal, every, afterMs } = options;
  let since = 0;
  let saved: Position | undefined;
  let isWaiting = false;
  let isStopped = false;
  let saving: Promise<void> | undefined;

  async function write(): Promise<void> {
    since = 0;
    await options.beforeSave();
    const position = options.position();
    if (position === undefined || position === saved) return;
    await options.save(position);
    saved = position;
  }

  function save(): void {
    if (saving !== undefined || isStopped) return;
    saving = write()
      .catch((error: unknown) => {
        options.onFailure(error);
        since += 1;
      })
      .finally(() => {
        saving = undefined;
        if (since > 0) void saveLater();
      });
  }

  async function saveLater(): Promise<void> {
    if (isWaiting || isStopped) return;
    isWaiting = true;
    const isDue = await slept(clock, afterMs, signal);
    isWaiting = false;
    if (isDue) save();
  }

  return {
    note() {
      since += 1;
      if (since >= every) save();
      else if (!isWaiting) void saveLater();
    },
    async finish() {
      isStopped = true;
      await saving;
      await write();
    },
    stop() {
      isStopped = true;
    },
  };
}
