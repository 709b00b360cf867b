// Sends the events of node:test from a worker to the runner. A suite at the root is a test file.

import type { TestEvent } from 'node:test/reporters';
import type { WorkerMessage } from './messages.ts';

type Failure = Extract<WorkerMessage, { readonly kind: 'failed' }>;

export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const parents: string[] = [];
  let failure: Failure | undefined;
  const sendFailure = (): void => {
    if (failure !== undefined) process.send?.(failure);
    failure = undefined;
  };
  for await (const event of events) {
    if (failure !== undefined && event.type === 'test:diagnostic' && event.data.nesting > 0) {
      // The diagnostics of a test, such as its seed, follow its failure.
      failure = { ...failure, error: `${failure.error}\n${event.data.message}` };
      continue;
    }
    for (const message of messagesOf(event, parents)) {
      sendFailure();
      if (message.kind === 'failed') failure = message;
      else process.send?.(message);
    }
    yield '';
  }
  sendFailure();
}

function messagesOf(event: TestEvent, parents: string[]): readonly WorkerMessage[] {
  const { type, data } = event;
  // An error after the end of its test belongs to no test; Node reports it as a diagnostic.
  if (type === 'test:diagnostic' && data.message.startsWith('Error:')) {
    return [{ kind: 'failed', error: data.message }];
  }
  if (type === 'test:diagnostic' && data.nesting > 0)
    return [{ kind: 'noted', text: data.message }];
  // Not 'test:start', which waits until the tests before it are reported.
  if (type !== 'test:dequeue' && type !== 'test:pass' && type !== 'test:fail') return [];
  const isFile = data.nesting === 0;
  const title = [...parents.slice(1, data.nesting), data.name].join(' › ');
  if (type === 'test:dequeue') {
    parents[data.nesting] = data.name;
    return isFile ? [] : [{ kind: 'started', title }];
  }
  const isSuite = data.details.type === 'suite';
  const done: readonly WorkerMessage[] = isFile ? [{ kind: 'done' }] : [];
  if (type === 'test:fail' && !(isSuite && hasFailedTests(data.details.error))) {
    const error = describe(data.details.error);
    return [{ kind: 'failed', error, ...(isFile ? {} : { title }) }, ...done];
  }
  if (isFile) return done;
  const { skip, todo } = data;
  if (skip === undefined && todo === undefined) return isSuite ? [] : [{ kind: 'passed', title }];
  const reason = [skip, todo].find((text) => typeof text === 'string');
  if (reason === undefined) return [{ kind: 'failed', title, error: 'skipped without a reason' }];
  return [{ kind: 'skipped', title, reason }];
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
