// The conformance suite of bus engines: cases for any test runner.

import type { BusCase, BusCases, BusFixture, FixtureCapabilities } from './fixture.ts';
import { modelCases } from './model.ts';
import { consumeCases, lostLeaseCases } from './consume.ts';
import { damagedGroupCases } from './damaged-groups.ts';
import { deadLetterCases } from './dead-letters.ts';
import { fencedCases, groupCases, orderCases } from './groups.ts';
import { patternCases } from './patterns.ts';
import { processCases, restartCases, wholeBatchCases } from './processes.ts';
import { badPublishCases, publishCases } from './publish.ts';
import { positionCases, readCases, subscribeCases } from './readers.ts';
import { requestCases } from './requests.ts';
import { adminCases, bytesCases, infoCases, pendingCases, trimCases } from './streams.ts';

export type { BusCase, BusFixture, OpenedBus } from './fixture.ts';

const topics: readonly {
  readonly topic: string;
  readonly needs?: readonly (keyof FixtureCapabilities)[];
  readonly cases: BusCases;
}[] = [
  { topic: 'publish', cases: { ...publishCases, ...badPublishCases } },
  { topic: 'groups', cases: groupCases },
  { topic: 'damaged groups', cases: damagedGroupCases },
  { topic: 'order', cases: orderCases },
  { topic: 'late members', needs: ['fencedAcks'], cases: fencedCases },
  { topic: 'patterns', cases: patternCases },
  { topic: 'dead letters', cases: deadLetterCases },
  { topic: 'consumers', cases: consumeCases },
  { topic: 'consumers', needs: ['fencedAcks'], cases: lostLeaseCases },
  { topic: 'subscriptions', cases: subscribeCases },
  { topic: 'replay', cases: readCases },
  { topic: 'replay', needs: ['patternPositions'], cases: positionCases },
  { topic: 'streams', cases: infoCases },
  { topic: 'trimming', cases: trimCases },
  { topic: 'trimming', needs: ['streamBytes'], cases: bytesCases },
  { topic: 'administration', cases: adminCases },
  { topic: 'administration', needs: ['pendingList'], cases: pendingCases },
  { topic: 'requests', cases: requestCases },
  { topic: 'several processes', needs: ['crossProcess'], cases: processCases },
  { topic: 'broker', needs: ['restart'], cases: restartCases },
  { topic: 'broker', needs: ['restart', 'atomicBatch'], cases: wholeBatchCases },
  { topic: 'model', cases: modelCases },
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
      skip: missing.length === 0 ? undefined : `needs ${missing.join(', ')}`,
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
