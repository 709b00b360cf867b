// Assertions of the conformance suites and of given-when-then.

import assert, { AssertionError } from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../foundation/clock.ts';
import { hasCode, type MillraceError } from '../foundation/error.ts';
import type { ErrorCode } from '../foundation/error-codes.ts';

/** Generous, because other work may use the machine: only a failing test waits this long. */
export const eventuallyMs = 60_000;

/**
 * Polls until the condition holds, for at most a minute; for effects without a signal, such as those of other
 * processes.
 *
 * @example
 * import { eventually } from 'millrace/testing';
 *
 * const whenServed = (url: string) => eventually(async () => (await fetch(url)).ok);
 */
export async function eventually(holds: Condition): Promise<void>;
export async function eventually(what: string, holds: Condition): Promise<void>;
export async function eventually(first: string | Condition, second?: Condition): Promise<void> {
  const [what, holds] = typeof first === 'string' ? [first, second] : ['the condition', first];
  const deadlineMs = systemClock.now() + eventuallyMs;
  while ((await holds?.()) !== true) {
    if (systemClock.now() > deadlineMs) assert.fail(`not within ${eventuallyMs} ms: ${what}`);
    await systemClock.sleep(5);
  }
}

type Condition = () => boolean | Promise<boolean>;

/** Asserts that the work rejects with this code, and returns the error. */
export async function rejectsWith(
  work: () => Promise<unknown>,
  code: ErrorCode,
): Promise<MillraceError> {
  try {
    await work();
  } catch (error) {
    if (hasCode(error, code)) return error;
    throw new AssertionError({
      message: `expected ${code}, but got ${String(error)}`,
      actual: error,
      expected: code,
    });
  }
  throw new AssertionError({ message: `expected ${code}, but the call succeeded` });
}

/** Puts a readable difference into the message, and hides this helper from the stack. */
export function assertEqual(
  actual: unknown,
  expected: unknown,
  stackStartFn: CallableFunction,
): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new AssertionError({ actual, expected, operator: 'deepStrictEqual', stackStartFn });
}
