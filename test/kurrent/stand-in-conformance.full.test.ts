// The conformance suite of the store through the KurrentDB adapter, on the stand-in for a real EventStoreDB. `npm test`
// runs all cases but the largest as on 23.10, and the quick ones of the topics that differ on the others; the soak runs everything.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { eventStoreConformance } from '../../src/testing/conformance/store/event-store.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { soakMinutes } from '../store/rig.ts';
import { largeOnStandIn, slowOnStandIn, standInFixture } from './stand-in-fixture.ts';

const topics: Readonly<Record<Preset, RegExp>> = {
  '23.10': /^/,
  '24.10': /^(?:read all|filter|subscribe|closing):/,
  cluster: /^(?:append|idempotent append|subscribe to a stream|cross-process|closing):/,
};

const names = new Set<string>();
for (const [preset, wanted] of Object.entries(topics) as [Preset, RegExp][]) {
  const fixture = standInFixture(preset);
  after(() => fixture[Symbol.asyncDispose]());
  describe(`KurrentDB on the stand-in ${preset}`, () => {
    for (const { name, skip, run } of eventStoreConformance(fixture)) {
      names.add(name);
      const isSlow = largeOnStandIn.has(name) || (preset !== '23.10' && slowOnStandIn.has(name));
      if (soakMinutes === 0 && (isSlow || !wanted.test(name))) continue;
      test(name, { skip: skip ?? false }, ({ signal }) => run(signal));
    }
  });
}

test('every case that is left out exists', () => {
  assert.deepEqual(
    [...slowOnStandIn, ...largeOnStandIn].filter((name) => !names.has(name)),
    [],
  );
});
