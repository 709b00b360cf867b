// The error for a command that a business rule rejects: an expected outcome, not a failure.

import { MillraceError } from '../foundation/error.ts';

/**
 * Thrown by `decide` when a business rule rejects the command (`COMMAND_REJECTED`). No event is stored. The
 * reason is for programs, the message for people.
 *
 * @example
 * import { CommandRejected } from 'millrace/aggregates';
 *
 * const withdraw = (amount: number, balance: number) => {
 *   if (amount > balance) throw new CommandRejected('insufficient-funds', `only ${balance} left`, { balance });
 * };
 */
export class CommandRejected extends MillraceError {
  readonly reason: string;

  constructor(reason: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super('COMMAND_REJECTED', message, {
      retryable: false,
      details: { ...details, reason },
    });
    this.reason = reason;
  }
}
