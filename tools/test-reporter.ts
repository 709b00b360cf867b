// Turns node's test events into one JSON line per test, for tools/test.ts to count and show.

import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

export interface TestOutcome {
  readonly outcome: 'started' | 'passed' | 'failed' | 'skipped' | 'suite';
  readonly title: string;
  readonly file: string;
  readonly error?: string;
}

export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const parents: string[] = [];
  for await (const event of events) {
    const { type, data } = event;
    // What went wrong when its test was over belongs to none: all that is told of it is this, and the exit code.
    if (type === 'test:diagnostic' && data.message.startsWith('Error:')) yield `${data.message}\n`;
    // Not 'test:start': that one waits for the tests before it to be reported.
    if (type !== 'test:dequeue' && type !== 'test:pass' && type !== 'test:fail') continue;
    if (type === 'test:dequeue') parents[data.nesting] = data.name;
    const outcome: TestOutcome = {
      outcome: outcomeOf(event),
      title: [...parents.slice(0, data.nesting), data.name].join(' › '),
      file: data.file === undefined ? '' : relative(process.cwd(), data.file),
      ...(type === 'test:fail' ? { error: describe(data.details.error) } : {}),
    };
    yield `${JSON.stringify(outcome)}\n`;
  }
}

function outcomeOf(
  event: Extract<TestEvent, { type: 'test:dequeue' | 'test:pass' | 'test:fail' }>,
): TestOutcome['outcome'] {
  if (event.type === 'test:dequeue') return 'started';
  // A suite passes or fails with its tests; counting it too would count them twice.
  if (event.data.details.type === 'suite' && !isOwnFailure(event)) return 'suite';
  if (event.type === 'test:fail') return 'failed';
  return event.data.skip || event.data.todo ? 'skipped' : 'passed';
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
