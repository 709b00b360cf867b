// The conformance suite of task engines: cases for any test runner.

import { limitCases, modeCases, orderCases, waitCases } from './claims.ts';
import { adminCases, cancelCases, retryCases } from './admin.ts';
import { damagedCases } from './damaged.ts';
import { enqueueCases } from './enqueue.ts';
import { lifeCases } from './life.ts';
import { outageCases, resumeCases } from './outage.ts';
import { stepCases } from './steps.ts';
import { sweepCases } from './sweep.ts';
import { modelCases } from './model.ts';
import {
  openCase,
  type TasksCase,
  type TasksCases,
  type TasksFixture,
  type TasksFixtureCapabilities,
} from './fixture.ts';

export type { OpenedTasks, TasksCase, TasksFixture } from './fixture.ts';

const topics: readonly {
  readonly topic: string;
  readonly needs?: readonly (keyof TasksFixtureCapabilities)[];
  /** Uses the system clock instead of the fake one. */
  readonly isRealTime?: boolean;
  readonly cases: TasksCases;
}[] = [
  { topic: 'enqueue', cases: enqueueCases },
  { topic: 'life', cases: lifeCases },
  { topic: 'steps', cases: stepCases },
  { topic: 'order', needs: ['exactOrder'], cases: orderCases },
  { topic: 'limits', needs: ['exactLimits'], cases: limitCases },
  { topic: 'modes', cases: modeCases },
  { topic: 'waiting', isRealTime: true, cases: waitCases },
  { topic: 'cancel', cases: cancelCases },
  { topic: 'retry', cases: retryCases },
  { topic: 'administration', cases: adminCases },
  { topic: 'sweeper', cases: sweepCases },
  { topic: 'damaged', cases: damagedCases },
  { topic: 'model', cases: modelCases },
  { topic: 'outage', needs: ['restart'], cases: outageCases },
  {
    topic: 'outage',
    needs: ['restart', 'crossProcess'],
    isRealTime: true,
    cases: resumeCases,
  },
];

/**
 * The cases, for any test runner.
 *
 * @example
 * import { test } from 'node:test';
 * import { tasksConformance, type TasksFixture } from 'millrace/testing';
 *
 * const runSuite = (fixture: TasksFixture) => {
 *   for (const { name, skip, run } of tasksConformance(fixture)) {
 *     test(name, { skip: skip ?? false }, run);
 *   }
 * };
 */
export function tasksConformance(fixture: TasksFixture): readonly TasksCase[] {
  return topics.flatMap(({ topic, needs = [], isRealTime = false, cases }) => {
    const missing = needs.filter((need) => !fixture.capabilities[need]);
    return Object.entries(cases).map(([title, run]) => ({
      name: `${topic}: ${title}`,
      skip: missing.length === 0 ? undefined : `needs ${missing.join(', ')}`,
      async run() {
        const context = await openCase(fixture, isRealTime);
        try {
          await run(context.opened.tasks, context);
        } finally {
          await context.opened.tasks[Symbol.asyncDispose]();
          await context.opened.close?.();
        }
      },
    }));
  });
}
