// The error for a command that a business rule rejects: an expected outcome, not a failure.

import { MillraceError } from '../foundation/error.ts';

/**
 * Thrown by `decide` when a business rule rejects the command (`COMMAND_REFUSED`). No event is stored. The
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
