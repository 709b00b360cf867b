// Sends the events of node:test from a worker to the runner. A suite at the root is a test file.

import type { TestEvent } from 'node:test/reporters';
import type { WorkerMessage } from './messages.ts';

export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const parents: string[] = [];
  for await (const event of events) {
    const message = messageOf(event, parents);
    if (message !== undefined) process.send?.(message);
    yield '';
  }
}

function messageOf(event: TestEvent, parents: string[]): WorkerMessage | undefined {
  const { type, data } = event;
  // An error after the end of its test belongs to no test; Node reports it as a diagnostic.
  if (type === 'test:diagnostic' && data.message.startsWith('Error:')) {
    return { kind: 'failed', error: data.message };
  }
  // Not 'test:start', which waits until the tests before it are reported.
  if (type !== 'test:dequeue' && type !== 'test:pass' && type !== 'test:fail') return undefined;
  const title = [...parents.slice(1, data.nesting), data.name].join(' › ');
  if (type === 'test:dequeue') {
    parents[data.nesting] = data.name;
    return data.nesting === 0 ? undefined : { kind: 'started', title };
  }
  const isSuite = data.details.type === 'suite';
  if (type === 'test:fail' && !(isSuite && hasFailedTests(data.details.error))) {
    const error = describe(data.details.error);
    if (data.nesting > 0) return { kind: 'failed', title, error };
    process.send?.({ kind: 'failed', error });
    return { kind: 'done' };
  }
  if (data.nesting === 0) return { kind: 'done' };
  const { skip, todo } = data;
  if (skip === undefined && todo === undefined) {
    return isSuite ? undefined : { kind: 'passed', title };
  }
  const reason = [skip, todo].find((text) => typeof text === 'string');
  if (reason === undefined) return { kind: 'failed', title, error: 'skipped without a reason' };
  return { kind: 'skipped', title, reason };
}

/** A suite also fails because of a test in it, which is reported by itself. */
function hasFailedTests(error: Error): boolean {
  return (error as { readonly failureType?: string }).failureType === 'subtestsFailed';
}

function describe(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error;
  const counterexample = cause.cause instanceof Error ? `\ncaused by ${cause.cause.stack}` : '';
  return `${cause.stack ?? cause.message}${counterexample}`;
}
