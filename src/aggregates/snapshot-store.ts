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
 * import { memorySnapshots, type SnapshotStore } from 'millrace/aggregates';
 *
 * const snapshots: SnapshotStore = memorySnapshots();
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

/**
 * Snapshots in memory, for unit tests. Each snapshot is stored as a JSON string, as in a database.
 *
 * @example
 * import { memorySnapshots } from 'millrace/aggregates';
 *
 * const snapshots = memorySnapshots();
 * const takenAt = new Date().toISOString();
 * await snapshots.save('banking.account.v1-core-a1', {
 *   revision: 99,
 *   eventId: '0199b5a0-0000-7000-8000-000000000000',
 *   state: { balance: 12 },
 *   codeVersion: 1,
 *   takenAt,
 * });
 */
export function memorySnapshots(): SnapshotStore {
  const byStream = new Map<string, { readonly revision: number; readonly json: string }>();
  return {
    async load(stream) {
      const found = byStream.get(stream);
      return found === undefined ? undefined : (JSON.parse(found.json) as Snapshot);
    },
    async save(stream, snapshot) {
      const { revision } = snapshot;
      if (revision < (byStream.get(stream)?.revision ?? 0)) return;
      byStream.set(stream, { revision, json: JSON.stringify(snapshot) });
    },
  };
}
