// Turns node's test events into one JSON line per test, for tools/test.ts to count and show.

import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

export interface TestOutcome {
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly title: string;
  readonly file: string;
  readonly error?: string;
}

export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const parents: string[] = [];
  for await (const event of events) {
    if (event.type === 'test:start') parents[event.data.nesting] = event.data.name;
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const { data } = event;
    // A suite passes or fails with its tests; counting it too would count them twice.
    if (data.details.type === 'suite' && !isOwnFailure(event)) continue;
    const outcome: TestOutcome = {
      outcome:
        event.type === 'test:fail' ? 'failed' : data.skip || data.todo ? 'skipped' : 'passed',
      title: [...parents.slice(0, data.nesting), data.name].join(' › '),
      file: data.file === undefined ? '' : relative(process.cwd(), data.file),
      ...(event.type === 'test:fail' ? { error: describe(event.data.details.error) } : {}),
    };
    yield `${JSON.stringify(outcome)}\n`;
  }
}

/** A suite fails by itself when its set-up or its body threw, not because a test in it failed. */
function isOwnFailure(event: TestEvent): boolean {
  return (
    event.type === 'test:fail' &&
    (event.data.details.error as { readonly failureType?: string }).failureType !== 'subtestsFailed'
  );
}

function describe(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error;
  const counterexample =
    cause.cause instanceof Error ? `\ncaused by ${cause.cause.stack ?? ''}` : '';
  return `${cause.stack ?? cause.message}${counterexample}`.replace(/^/gm, '    ');
}
