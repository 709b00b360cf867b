// The conformance suite of running projections, for every engine with checkpoints and documents.

import { inlineCases } from './inline.ts';
import type { ProjectionFixture, ProjectionHandle } from './projection-fixture.ts';
import { rebuildCases } from './rebuild.ts';
import { runningCases } from './running.ts';

interface ProjectionContext {
  readonly db: ProjectionHandle;
  readonly fixture: ProjectionFixture;
}

type CaseBody = (context: ProjectionContext) => Promise<void>;

export type ProjectionCases = Readonly<Record<string, CaseBody>>;

export interface ProjectionCase {
  /** The topic, followed by a sentence. */
  readonly name: string;
  readonly run: () => Promise<void>;
}

const topics: Readonly<Record<string, ProjectionCases>> = {
  running: runningCases,
  rebuilding: rebuildCases,
  inline: inlineCases,
};

export function projectionsConformance(fixture: ProjectionFixture): readonly ProjectionCase[] {
  return Object.entries(topics).flatMap(([topic, cases]) =>
    Object.entries(cases).map(([sentence, run]): ProjectionCase => ({
      name: `${topic}: ${sentence}`,
      run: async () => run({ db: await fixture.open(), fixture }),
    })),
  );
}
