// Differences that can be read: what the given-when-then of this folder fail with.

import { AssertionError } from 'node:assert';
import { inspect, isDeepStrictEqual } from 'node:util';

/** Node writes the difference into the message, line by line. */
export function assertEqual(
  actual: unknown,
  expected: unknown,
  stackStartFn: CallableFunction,
): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new AssertionError({ actual, expected, operator: 'deepStrictEqual', stackStartFn });
}

export function show(value: unknown): string {
  return inspect(value, { depth: 10, breakLength: 80 });
}
