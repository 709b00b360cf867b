// The conformance suite of snapshot stores: cases for any test runner.

import assert from 'node:assert/strict';
import type { Snapshot, SnapshotStore } from '../../../aggregates/snapshot-store.ts';

export interface SnapshotStoreCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/**
 * The suite over one implementation; `open` is asked for a store once per case. Streams are fresh
 * in each case, so all of them may share one database.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { snapshotStoreConformance } from 'millrace/testing';
 * import { test } from 'node:test';
 *
 * for (const { name, run } of snapshotStoreConformance(async () => openMemory().snapshots)) {
 *   test(name, run);
 * }
 */
export function snapshotStoreConformance(
  open: () => Promise<SnapshotStore & Partial<AsyncDisposable>>,
): readonly SnapshotStoreCase[] {
  const each = (
    name: string,
    body: (snapshots: SnapshotStore, stream: string) => Promise<void>,
  ): SnapshotStoreCase => ({
    name,
    async run() {
      const snapshots = await open();
      try {
        await body(snapshots, `banking.account.v1-core-${crypto.randomUUID()}`);
      } finally {
        await snapshots[Symbol.asyncDispose]?.();
      }
    },
  });

  return [
    each('a stream without a snapshot has none', async (snapshots, stream) => {
      assert.equal(await snapshots.load(stream), undefined);
    }),

    each('returns a snapshot as it was saved', async (snapshots, stream) => {
      await snapshots.save(stream, snapshotAt(7));
      assert.deepEqual(await snapshots.load(stream), snapshotAt(7));
    }),

    each('a state may be any JSON value', async (snapshots, stream) => {
      const states = [
        null,
        0,
        '',
        false,
        [],
        'ünïcödé 🌊 "\\',
        { nested: [{ deep: [1.5, null] }] },
      ];
      for (const [revision, state] of states.entries()) {
        await snapshots.save(stream, { ...snapshotAt(revision), state });
        assert.deepEqual((await snapshots.load(stream))?.state, state);
      }
    }),

    each('stores a large state', async (snapshots, stream) => {
      const state = { text: 'x'.repeat(1_000_000) };
      await snapshots.save(stream, { ...snapshotAt(0), state });
      assert.deepEqual((await snapshots.load(stream))?.state, state);
    }),

    each('a newer revision replaces an older one', async (snapshots, stream) => {
      await snapshots.save(stream, snapshotAt(100));
      await snapshots.save(stream, snapshotAt(200));
      assert.deepEqual(await snapshots.load(stream), snapshotAt(200));
    }),

    each('an older revision never replaces a newer one', async (snapshots, stream) => {
      await snapshots.save(stream, snapshotAt(200));
      await snapshots.save(stream, { ...snapshotAt(100), codeVersion: 9 });
      assert.deepEqual(await snapshots.load(stream), snapshotAt(200));
    }),

    each(
      'the same revision of another code version replaces the snapshot',
      async (snapshots, stream) => {
        await snapshots.save(stream, { ...snapshotAt(100), codeVersion: 2 });
        await snapshots.save(stream, {
          ...snapshotAt(100),
          codeVersion: 1,
          state: { by: 'rollback' },
        });
        const kept = await snapshots.load(stream);
        assert.deepEqual([kept?.codeVersion, kept?.state], [1, { by: 'rollback' }]);
      },
    ),

    each('snapshots of streams are independent', async (snapshots, stream) => {
      await snapshots.save(stream, snapshotAt(1));
      await snapshots.save(`${stream}-2`, snapshotAt(2));
      assert.equal((await snapshots.load(stream))?.revision, 1);
      assert.equal((await snapshots.load(`${stream}-2`))?.revision, 2);
      assert.equal(await snapshots.load(stream.toUpperCase()), undefined);
    }),

    each('of concurrent writers the highest revision stays', async (snapshots, stream) => {
      const revisions = Array.from({ length: 50 }, (_, index) => (index * 37) % 50);
      await Promise.all(revisions.map((revision) => snapshots.save(stream, snapshotAt(revision))));
      assert.deepEqual(await snapshots.load(stream), snapshotAt(49));
    }),
  ];
}

function snapshotAt(revision: number): Snapshot {
  return {
    revision,
    eventId: `event-${revision}`,
    state: { balance: revision * 10, owner: 'ada' },
    codeVersion: 1,
    takenAt: '2025-09-30T10:00:00.000Z',
  };
}
