// Writes the checkpoint: as part of a handler's transaction where there is one, else after a number of
// events or a delay.

import type { Clock } from '../../foundation/clock.ts';
import type { Position } from '../../store/position.ts';
import { slept } from '../../foundation/async/slept.ts';

export interface CheckpointWriterOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly every: number;
  readonly afterMs: number;
  readonly position: () => Position | undefined;
  /** The position once these tickets are done. */
  readonly positionWith: (tickets: readonly number[]) => Position | undefined;
  /** Stores the buffered events before the checkpoint passes them. */
  readonly beforeSave: () => Promise<void>;
  readonly save: (position: Position) => Promise<void>;
  /** Called for every failed write, even if it is retried. */
  readonly onFailure: (error: unknown) => void;
}

/** A checkpoint that is part of a handler's commit. */
interface CarriedCheckpoint {
  readonly position: Position;
  /** Called once after the commit, with its result. */
  end(isSaved: boolean): void;
}

export interface CheckpointWriter {
  /**
   * The checkpoint for a handler's commit. Undefined if it would not advance, or if another commit already
   * carries one, because two would lock each other in the database.
   */
  carry(tickets: readonly number[]): CarriedCheckpoint | undefined;
  /** Counts a processed event. */
  note(): void;
  /** Writes the last checkpoint; rejects if that fails. */
  finish(): Promise<void>;
  stop(): void;
}

export function createCheckpointWriter(options: CheckpointWriterOptions): CheckpointWriter {
  const { clock, signal, every, afterMs } = options;
  let unsaved = 0;
  let saved: Position | undefined;
  let isWaiting = false;
  let isStopped = false;
  let isCarrying = false;
  /** Commits have left marks that the next checkpoint can remove. */
  let hasMarks = false;
  let saving: Promise<void> | undefined;

  async function write(): Promise<void> {
    unsaved = 0;
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
        unsaved += 1;
      })
      .finally(() => {
        saving = undefined;
        if (unsaved > 0) void saveLater();
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
      unsaved += 1;
      if (unsaved >= every) save();
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
