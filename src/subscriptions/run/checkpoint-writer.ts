// Writes the checkpoint: with the commits of handlers that have one, and for all others in groups,
// after so many events, or a moment after the first of them.

import type { Clock } from '../../foundation/clock.ts';
import type { Position } from '../../store/position.ts';
import { slept } from './deadline.ts';

export interface CheckpointWriterOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly every: number;
  readonly afterMs: number;
  readonly position: () => Position | undefined;
  /** What it will be once these tickets are done. */
  readonly positionWith: (tickets: readonly number[]) => Position | undefined;
  /** What must be in the database before the checkpoint may pass it. */
  readonly beforeSave: () => Promise<void>;
  readonly save: (position: Position) => Promise<void>;
  /** Also told of what will be tried again. */
  readonly onFailure: (error: unknown) => void;
}

/** A checkpoint that goes with a handler's commit. */
interface CarriedCheckpoint {
  readonly position: Position;
  /** Told once, whatever became of the commit. */
  end(isSaved: boolean): void;
}

export interface CheckpointWriter {
  /**
   * Undefined: nothing would move, or another commit has one with it; two at once would wait for
   * each other in the database.
   */
  carry(tickets: readonly number[]): CarriedCheckpoint | undefined;
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
  let isCarrying = false;
  /** Commits have left marks that the checkpoint has passed since. */
  let hasMarks = false;
  let saving: Promise<void> | undefined;

  async function write(): Promise<void> {
    since = 0;
    await options.beforeSave();
    const position = options.position();
    if (position === undefined || (position === saved && !hasMarks)) return;
    hasMarks = false;
    await options.save(position);
    wasSaved(position);
  }

  function wasSaved(position: Position): void {
    if (saved === undefined || saved < position) saved = position;
  }

  function save(): void {
    if (saving !== undefined || isStopped) return;
    saving = write()
      .catch((error: unknown) => {
        options.onFailure(error);
        hasMarks = true;
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
    carry(tickets) {
      hasMarks = true;
      const position = isCarrying ? undefined : options.positionWith(tickets);
      if (position === undefined || (saved !== undefined && position <= saved)) return undefined;
      isCarrying = true;
      return {
        position,
        end(isSaved) {
          isCarrying = false;
          hasMarks = true;
          if (isSaved) wasSaved(position);
        },
      };
    },
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
