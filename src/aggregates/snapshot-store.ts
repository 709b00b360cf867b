// Snapshots: a state written down so that its history need not be read again. Only ever a shortcut:
// losing all of them costs time and nothing else.

/** The state of one stream at a revision, as JSON. */
export interface Snapshot {
  /** Of the last event in the state. */
  readonly revision: number;
  /** Of that same event: a stream that was deleted or restored since has another one there. */
  readonly eventId: string;
  /** A JSON value. */
  readonly state: unknown;
  /** Of the code that computed the state. */
  readonly codeVersion: number;
  /** ISO 8601. */
  readonly takenAt: string;
}

/**
 * Keeps one snapshot for each stream. Implementations are checked by `snapshotStoreConformance`.
 *
 * @example
 * import { memorySnapshots, type SnapshotStore } from 'millrace/aggregates';
 *
 * const snapshots: SnapshotStore = memorySnapshots();
 * const latest = await snapshots.load('banking.account.v1-core-a1');
 * console.log(latest?.revision);
 */
export interface SnapshotStore {
  load(stream: string): Promise<Snapshot | undefined>;
  /**
   * Replaces what is there, unless that is of a higher revision: writers race, and the slower one
   * is not the better one. The code version plays no part, so that a rolled-back release goes on.
   */
  save(stream: string, snapshot: Snapshot): Promise<void>;
}
