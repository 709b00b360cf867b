import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { softDeleted, type StreamState } from './expected-revision.ts';
import { decideRetention, firstVisible, isVisible, visibleRange } from './retention.ts';

const state: StreamState = { revision: 4, truncateBefore: 0, tombstoned: false };
const deleted: StreamState = { ...state, truncateBefore: softDeleted };

describe('retention', () => {
  test('the stricter of truncation and count decides the first visible revision', () => {
    fc.assert(
      fc.property(
        fc.record({
          revision: fc.integer({ min: -1, max: 20 }),
          truncateBefore: fc.nat({ max: 25 }),
          maxCount: fc.option(fc.integer({ min: 1, max: 25 }), { nil: undefined }),
        }),
        ({ revision, truncateBefore, maxCount }) => {
          const first = firstVisible({
            revision,
            truncateBefore,
            tombstoned: false,
            ...(maxCount === undefined ? {} : { maxCount }),
          });
          const revisions = Array.from({ length: revision + 1 }, (_, index) => index);
          const visible = revisions
            .filter((each) => each >= truncateBefore)
            .filter((each) => maxCount === undefined || each > revision - maxCount);
          assert.deepEqual(
            revisions.filter((each) => each >= first),
            visible,
          );
        },
      ),
    );
  });

  test('an event expires exactly at its maximum age', () => {
    const aging = { ...state, maxAgeSeconds: 60 };
    const row = { revision: 1, recordedAtMs: 1_000_000 };
    assert.equal(isVisible(aging, row, 1_059_999), true);
    assert.equal(isVisible(aging, row, 1_060_000), false);
    assert.equal(isVisible(state, row, 9_999_999_999), true);
  });

  test('a live reader gets each event from the revision on at which it went live', () => {
    const live = { direction: 'forwards', nowMs: 1_000_000, liveFrom: 3 } as const;
    const strict = { ...state, maxCount: 1, maxAgeSeconds: 1 };
    assert.deepEqual(visibleRange({ ...live, from: 3 }, strict), {
      low: 3,
      high: 4,
      recordedAfterMs: -1,
    });
    assert.equal(visibleRange({ ...live, from: 0 }, strict)?.low, 3);
    assert.equal(visibleRange({ ...live, from: 4 }, deleted)?.low, 4);
    assert.equal(visibleRange({ ...live, from: 5 }, deleted), undefined);
    const few = { ...state, maxCount: 3, maxAgeSeconds: 1 };
    assert.deepEqual(visibleRange({ ...live, from: 0 }, few), {
      low: 2,
      high: 4,
      recordedAfterMs: 999_000,
    });
  });

  test('a change is checked against the expected revision', () => {
    const values = { truncateBefore: softDeleted };
    const decide = (
      of: StreamState | undefined,
      expected?: Parameters<typeof decideRetention>[1]['expected'],
    ) => decideRetention(of, { of: 's', values, ...(expected === undefined ? {} : { expected }) });
    const retain = { kind: 'retain', truncateBefore: softDeleted };
    const conflict = (actual: number) => ({ kind: 'conflict', actual });
    assert.deepEqual(decide(state), retain);
    assert.deepEqual(decide(state, 4), retain);
    assert.deepEqual(decide(state, 'exists'), retain);
    assert.deepEqual(decide(state, 3), conflict(4));
    assert.deepEqual(decide(state, 'none'), conflict(4));
    assert.deepEqual(decide(undefined, 'none'), retain);
    assert.deepEqual(decide(undefined, 'exists'), conflict(-1));
    assert.deepEqual(decide(undefined, 0), conflict(-1));
    assert.deepEqual(decide(deleted, 'none'), retain);
    assert.deepEqual(decide(deleted, 'exists'), { kind: 'deleted' });
    assert.deepEqual(decide({ ...state, tombstoned: true }), { kind: 'deleted' });
  });

  test('new metadata of a deleted stream keeps deleted events hidden', () => {
    const decide = (of: StreamState, truncateBefore?: number) =>
      decideRetention(of, {
        of: 's',
        values: truncateBefore === undefined ? {} : { truncateBefore },
      });
    assert.deepEqual(decide(deleted), { kind: 'retain', truncateBefore: 5 });
    assert.deepEqual(decide(deleted, 2), { kind: 'retain', truncateBefore: 5 });
    assert.deepEqual(decide(deleted, softDeleted), { kind: 'retain', truncateBefore: softDeleted });
    assert.deepEqual(decide(state), { kind: 'retain', truncateBefore: 0 });
    assert.deepEqual(decide(state, 2), { kind: 'retain', truncateBefore: 2 });
  });
});
