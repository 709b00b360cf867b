// The conformance suite of read model stores, for our engines and for adapters of users. A case is skipped if it needs
// a capability that the engine lacks; the reason names the capability.

import { badInputCases } from './bad-input.ts';
import { clearCases } from './clear.ts';
import { documentCases } from './documents.ts';
import { fenceCases } from './fence.ts';
import { groupCases } from './groups.ts';
import { indexCases } from './index-entries.ts';
import { listCases } from './cached-lists.ts';
import { modelCases } from './model.ts';
import { rangeCases } from './ranges.ts';
import {
  contextOf,
  type ReadModelCase,
  type ReadModelCases,
  type ReadModelFixture,
} from './read-model-fixture.ts';
import { setCases } from './sets.ts';
import { sharingCases } from './sharing.ts';

export type { ReadModelCase, ReadModelFixture } from './read-model-fixture.ts';

const topics: Readonly<Record<string, ReadModelCases>> = {
  documents: documentCases,
  fences: fenceCases,
  indexes: indexCases,
  sets: setCases,
  ranges: rangeCases,
  groups: groupCases,
  'cached lists': listCases,
  clearing: clearCases,
  model: modelCases,
  'bad input': badInputCases,
  'several processes': sharingCases,
};

/**
 * All cases, for any test runner. Each uses a separate model, so they can share a store.
 *
 * @example
 * import { test } from 'node:test';
 * import { openMemory } from 'millrace/engines/memory';
 * import { readModelsConformance } from 'millrace/testing';
 *
 * const store = openMemory().readModels;
 * const cases = readModelsConformance({ capabilities: store.capabilities, open: async () => store });
 * for (const { name, skip, run } of cases) test(name, { skip: skip ?? false }, run);
 */
export function readModelsConformance(fixture: ReadModelFixture): readonly ReadModelCase[] {
  return Object.entries(topics).flatMap(([topic, cases]) =>
    Object.entries(cases).map(([sentence, given]): ReadModelCase => {
      const { needs, run } = typeof given === 'function' ? { needs: undefined, run: given } : given;
      const isMissing =
        needs !== undefined &&
        (needs === 'closed'
          ? fixture.closed === undefined
          : !fixture.capabilities[needs] ||
            (needs === 'crossProcess' && fixture.second === undefined));
      return {
        name: `${topic}: ${sentence}`,
        skip: isMissing ? `needs ${needs}` : undefined,
        run: async () => run(await contextOf(fixture)),
      };
    }),
  );
}
