import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { decideAppend, softDeleted, type ExpectedRevision } from './expected-revision.ts';
import {
  emptyModelStream,
  modelAppend,
  type ModelStream,
} from '../testing/conformance/store/model.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const expected = fc.oneof(
  fc.constantFrom<ExpectedRevision>('any', 'none', 'exists'),
  fc.nat({ max: 7 }),
);
const modelStream = fc
  .record({
    ids: fc.array(id, { maxLength: 6 }),
    deleted: fc.constantFrom('no' as const, 'soft' as const, 'tombstone' as const),
    metadata: fc.boolean(),
  })
  .map(({ ids, deleted, metadata }): ModelStream => {
    const known = ids.length > 0 || metadata || deleted !== 'no';
    return { ...emptyModelStream, ids, deleted, known };
  });

describe('decideAppend', () => {
  test('matches the model for every stream, expectation and list of ids', () => {
    fc.assert(
      fc.property(
        modelStream,
        expected,
        fc.uniqueArray(id, { minLength: 1, maxLength: 4 }),
        (stream, wanted, ids) => {
          assert.deepEqual(decided(stream, wanted, ids), modelAppend(stream, wanted, ids));
        },
      ),
      { numRuns: propertyRuns(5_000) },
    );
  });

  test('a duplicate of a duplicate has the same result', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(id, { minLength: 1, maxLength: 6 }),
        fc.nat({ max: 5 }),
        (all, from) => {
          const at = Math.min(from, all.length - 1);
          const ids = all.slice(at);
          const stream = { ...emptyModelStream, ids: all, known: true };
          const exact = decided(stream, at === 0 ? 'none' : at - 1, ids);
          assert.deepEqual(exact, { kind: 'duplicate', revision: all.length - 1 });
          assert.deepEqual(decided(stream, 'any', ids), exact);
        },
      ),
    );
  });

  test('makes no lookup if the state alone decides', () => {
    const known = {
      idsFrom: () => assert.fail('looked at slots'),
      revisionOf: () => assert.fail('looked for ids'),
    };
    const state = { revision: 4, truncateBefore: 0, tombstoned: false };
    assert.equal(decideAppend(state, 4, ['x'], known).kind, 'append');
    assert.equal(decideAppend(state, 5, ['x'], known).kind, 'conflict');
    assert.equal(decideAppend(undefined, 'none', ['x'], known).kind, 'append');
    assert.equal(decideAppend(undefined, 'exists', ['x'], known).kind, 'conflict');
    const dead = { ...state, tombstoned: true };
    assert.equal(decideAppend(dead, 'any', ['x'], known).kind, 'deleted');
  });

  test('reports when an append revives a deleted stream', () => {
    const state = { revision: 4, truncateBefore: softDeleted, tombstoned: false };
    const known = { idsFrom: () => [], revisionOf: () => undefined };
    for (const wanted of ['any', 'none', 4] as const) {
      assert.deepEqual(decideAppend(state, wanted, ['x'], known), {
        kind: 'append',
        firstRevision: 5,
        revives: true,
      });
    }
  });
});

/** The decision as defined by the model. */
function decided(stream: ModelStream, wanted: ExpectedRevision, ids: readonly string[]) {
  const state = stream.known
    ? {
        revision: stream.ids.length - 1,
        truncateBefore: stream.deleted === 'soft' ? softDeleted : 0,
        tombstoned: stream.deleted === 'tombstone',
      }
    : undefined;
  const decision = decideAppend(state, wanted, ids, {
    idsFrom: (revision, count) => stream.ids.slice(revision, revision + count),
    revisionOf(eventId) {
      const at = stream.ids.lastIndexOf(eventId);
      return at === -1 ? undefined : at;
    },
  });
  if (decision.kind === 'append') {
    return { kind: 'appended', revision: decision.firstRevision + ids.length - 1 };
  }
  return decision.kind === 'conflict' ? { kind: 'conflict', revision: decision.actual } : decision;
}
