// What every engine of the bus must do, as cases that a test runner takes one by one.

import type {
  BusCase,
  BusCases,
  BusFixture,
  FixtureCapabilities,
} from './bus-fixture.conformance.ts';
import { deadLetterCases } from './dead-letters.conformance.ts';
import { fencedCases, groupCases, orderCases } from './groups.conformance.ts';
import { patternCases } from './patterns.conformance.ts';
import { badPublishCases, publishCases } from './publish.conformance.ts';

export type { BusCase, BusFixture, OpenedBus } from './bus-fixture.conformance.ts';

const topics: readonly {
  readonly topic: string;
  readonly needs?: readonly (keyof FixtureCapabilities)[];
  readonly cases: BusCases;
}[] = [
  { topic: 'publish', cases: { ...publishCases, ...badPublishCases } },
  { topic: 'groups', cases: groupCases },
  { topic: 'order', cases: orderCases },
  { topic: 'late members', needs: ['fencedAcks'], cases: fencedCases },
  { topic: 'patterns', cases: patternCases },
  { topic: 'dead letters', cases: deadLetterCases },
];

/**
 * The cases, for any test runner.
 *
 * @example
 * import { test } from 'node:test';
 * import { busConformance, type BusFixture } from 'millrace/testing';
 *
 * const runSuite = (fixture: BusFixture) => {
 *   for (const { name, skip, run } of busConformance(fixture)) {
 *     test(name, { skip: skip ?? false }, run);
 *   }
 * };
 */
export function busConformance(fixture: BusFixture): readonly BusCase[] {
  const { capabilities } = fixture;
  return topics.flatMap(({ topic, needs = [], cases }) => {
    const missing = needs.filter((need) => !capabilities[need]);
    return Object.entries(cases).map(([title, run]) => ({
      name: `${topic}: ${title}`,
      ...(missing.length === 0 ? {} : { skip: `needs ${missing.join(', ')}` }),
      async run() {
        const opened = await fixture.open();
        try {
          await run(opened.bus, { opened, capabilities });
        } finally {
          await opened.bus[Symbol.asyncDispose]();
          await opened.close?.();
        }
      },
    }));
  });
}
