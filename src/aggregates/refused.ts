// The business saying no: an expected outcome of a decision, not a failure of the program.

import { MillraceError } from '../foundation/error.ts';

/**
 * Thrown by `decide` when a rule forbids the command (`COMMAND_REFUSED`). Nothing is recorded. The
 * reason is for programs, the message for people.
 *
 * @example
 * import { Refused } from 'millrace/aggregates';
 *
 * const withdraw = (amount: number, balance: number) => {
 *   if (amount > balance) throw new Refused('insufficient-funds', `only ${balance} left`, { balance });
 * };
 */
export class Refused extends MillraceError {
  readonly reason: string;

  constructor(reason: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super('COMMAND_REFUSED', message, {
      retryable: false,
      details: { ...details, reason },
    });
    this.reason = reason;
  }
}
