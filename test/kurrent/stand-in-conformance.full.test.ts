// The conformance suite of the store through the KurrentDB adapter, on the stand-in for a real EventStoreDB. `npm test`
// runs all quick cases as on 23.10, and the topics that differ on the others; the soak runs everything.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { soakMinutes } from '../store/rig.ts';
import { standInFixture } from './stand-in-fixture.ts';

const topics: Readonly<Record<Preset, RegExp>> = {
  '23.10': /^/,
  '24.10': /^(?:read all|filter|subscribe|closing):/,
  cluster: /^(?:append|idempotent append|subscribe to a stream|cross-process|closing):/,
};

/** They take a second or more each. */
const slow = new Set([
  'append: stores the largest append completely',
  'page size in bytes: a page of all events ends with the event that reaches its size, with any filter',
  'filter: finds a match after thousands of other events, in both directions',
  'filter: random filters find the same events as plain JavaScript',
  'filter: a subscription finds the same events as a read with the same filter',
  'subscribe: a filter that matches nothing still reports its progress',
  'subscribe: reads at most a few pages ahead of a slow consumer',
  'subscribe concurrently: delivers every event once while eight writers append',
  'subscribe concurrently: delivers every event once while thirty-two writers share streams',
  'subscribe concurrently: delivers every event once when it repeatedly stops and resumes from its last position',
  'erasure: distinguishes people exactly by their ids',
  'model: random operations on streams have the results of the model (seed 1)',
]);

const names = new Set<string>();
for (const [preset, wanted] of Object.entries(topics) as [Preset, RegExp][]) {
  const fixture = standInFixture(preset);
  after(() => fixture[Symbol.asyncDispose]());
  describe(`KurrentDB on the stand-in ${preset}`, () => {
    for (const { name, skip, run } of eventStoreConformance(fixture)) {
      names.add(name);
      const isLeftOut = soakMinutes === 0 && (slow.has(name) || !wanted.test(name));
      if (isLeftOut) continue;
      test(name, { skip: skip ?? false }, ({ signal }) => run(signal));
    }
  });
}

test('every case that is left out exists', () => {
  assert.deepEqual(
    [...slow].filter((name) => !names.has(name)),
    [],
  );
});
