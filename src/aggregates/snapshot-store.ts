// The port for snapshots: stored states that shorten loading. Losing all snapshots costs only time.

/** The state of one stream at a revision, as JSON. */
export interface Snapshot {
  /** Revision of the last event in the state. */
  readonly revision: number;
  /** Id of that event: a stream that was deleted or restored has a different event at this revision. */
  readonly eventId: string;
  /** A JSON value. */
  readonly state: unknown;
  /** Version of the code that computed the state. */
  readonly codeVersion: number;
  /** ISO 8601. */
  readonly takenAt: string;
}

/**
 * Stores one snapshot per stream. Implementations are checked by `snapshotStoreConformance`.
 *
 * @example
 * import type { SnapshotStore } from 'millrace/aggregates';
 * import { openMemory } from 'millrace/engines/memory';
 *
 * const snapshots: SnapshotStore = openMemory().snapshots;
 * const latest = await snapshots.load('banking.account.v1-core-a1');
 * console.log(latest?.revision);
 */
export interface SnapshotStore {
  load(stream: string): Promise<Snapshot | undefined>;
  /**
   * Replaces the stored snapshot unless that one has a higher revision, because a slower writer may
   * save an older state. The code version is not compared, so a rolled-back release can save again.
   */
  save(stream: string, snapshot: Snapshot): Promise<void>;
}
