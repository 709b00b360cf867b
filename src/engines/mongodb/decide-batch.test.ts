import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { softDeleted, type ExpectedRevision } from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import { metadataStream, metadataType } from '../../store/stream-metadata.ts';
import { decideBatch, type KnownEvent, type KnownStreams } from './decide-batch.ts';
import type { EventDocument } from './collections.ts';
import { stateFrom } from './stream-states.ts';
import { propertyRuns } from '../../testing/property-runs.ts';

const recordedAt = new Date('2025-09-30T10:00:00.000Z');

/** Derives the stream states from the events, like the adapter. */
function knownFrom(events: readonly EventDocument[]): KnownStreams {
  const inStream = (stream: string) => events.filter((event) => event.stream === stream);
  const toKnown = ({ _id, version, position }: EventDocument): KnownEvent => ({
    eventId: _id,
    revision: version - 1,
    position,
  });
  const stateOf = (stream: string) =>
    stateFrom(
      inStream(stream).at(-1),
      inStream(metadataStream(stream)).findLast(({ retention }) => retention !== undefined),
    );
  return {
    states: {
      get: stateOf,
    } as unknown as KnownStreams['states'],
    eventById: (stream, id) =>
      inStream(stream)
        .map(toKnown)
        .findLast(({ eventId }) => eventId === id),
    eventAt: (stream, revision) =>
      inStream(stream)
        .map(toKnown)
        .find((event) => event.revision === revision),
  };
}

let ids = 0;

function append(stream: string, expected: ExpectedRevision, eventIds: string[]): StreamWrite {
  const rows = eventIds.map((eventId) => ({
    eventId,
    type: 'a.b.v1',
    tenant: 'core',
    payload: '1',
    meta: JSON.stringify({ occurredAt: recordedAt.toISOString(), tenant: 'core' }),
  }));
  return { stream, expected, rows };
}

function system(stream: string, more: Partial<StreamWrite>): StreamWrite {
  ids += 1;
  const [row] = append(stream, 'any', [`s${ids}`]).rows;
  const rows = row === undefined ? [] : [{ ...row, type: metadataType }];
  return { stream, expected: 'any', rows, ...more };
}

const stream = fc.constantFrom('s-core-1', 's-core-2');
const expected = fc.oneof(
  fc.constantFrom<ExpectedRevision>('any', 'any', 'none', 'exists'),
  fc.nat({ max: 4 }),
);
// Use few ids, so that duplicates and mixtures of old and new ids are common.
const eventIds = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), {
  minLength: 1,
  maxLength: 3,
});
const write: fc.Arbitrary<StreamWrite> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(stream, expected, eventIds).map((args) => append(...args)) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(stream, expected, fc.constantFrom(0, 1, 2, softDeleted))
      .map(([of, at, truncateBefore]) =>
        system(metadataStream(of), { retention: { of, expected: at, values: { truncateBefore } } }),
      ),
  },
  { weight: 1, arbitrary: stream.map((of) => system(of, { tombstone: true })) },
);
const units = fc.array(fc.array(write, { minLength: 1, maxLength: 3 }), {
  minLength: 1,
  maxLength: 12,
});

function oneByOne(all: readonly (readonly StreamWrite[])[]) {
  const events: EventDocument[] = [];
  const outcomes = all.map((unit): readonly WriteOutcome[] => {
    const at = { position: events.length + 1, recordedAt };
    const decided = decideBatch([unit], knownFrom([...events]), at);
    events.push(...decided.events);
    return decided.outcomes[0] ?? [];
  });
  return { events, outcomes };
}

test('appends decided together have the same outcomes as one by one', () => {
  fc.assert(
    fc.property(units, (all) => {
      const together = decideBatch(all, knownFrom([]), { position: 1, recordedAt });
      const single = oneByOne(all);
      assert.deepEqual(together.outcomes, single.outcomes);
      assert.deepEqual(together.events, single.events);
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test('the states derived from the events equal the decided states', () => {
  fc.assert(
    fc.property(units, (all) => {
      const { events, states } = decideBatch(all, knownFrom([]), { position: 1, recordedAt });
      const known = knownFrom(events);
      for (const [name, state] of states) assert.deepEqual(known.states.get(name), state);
    }),
    { numRuns: propertyRuns(1_000) },
  );
});

test('a rejected unit between others writes nothing', () => {
  const decided = decideBatch(
    [
      [append('s-core-1', 'none', ['a'])],
      [append('s-core-1', 0, ['b']), append('s-core-2', 3, ['c'])],
      [append('s-core-1', 0, ['d'])],
    ],
    knownFrom([]),
    { position: 7, recordedAt },
  );
  assert.deepEqual(
    decided.events.map(({ _id, version, position }) => [_id, version, position]),
    [
      ['a', 1, 7],
      ['d', 2, 8],
    ],
  );
  assert.equal(decided.isAllAppended, false);
  assert.deepEqual(decided.outcomes[1]?.[1], { kind: 'conflict', actual: -1 });
});
