// What came of a command that was sent: yes, no, or an error that leaves it open.

import { hasCode } from '../foundation/error.ts';
import type { SendCommand } from './reaction.ts';

/** Both kinds of no are final, and left no trace. */
export interface CommandDenied {
  /** `refused`: by a rule of the aggregate. `rejected`: nobody takes such a command. */
  readonly kind: 'refused' | 'rejected';
  readonly reason: string;
  readonly message: string;
  readonly cause: unknown;
}

export type CommandAnswer = { readonly kind: 'accepted' } | CommandDenied;

/** Rejects where nobody knows whether the command took effect: then it is to be sent again. */
export async function askCommand(
  send: SendCommand,
  request: Parameters<SendCommand>[0],
): Promise<CommandAnswer> {
  try {
    await send(request);
    return { kind: 'accepted' };
  } catch (cause) {
    if (hasCode(cause, 'COMMAND_REFUSED')) {
      const { reason } = cause.details;
      const known = typeof reason === 'string' ? reason : cause.code;
      return { kind: 'refused', reason: known, message: cause.message, cause };
    }
    if (hasCode(cause, 'COMMAND_UNKNOWN') || hasCode(cause, 'COMMAND_KEY_REUSED')) {
      return { kind: 'rejected', reason: cause.code, message: cause.message, cause };
    }
    if (cause instanceof Error && cause.name === 'Terminal') {
      return { kind: 'rejected', reason: 'terminal', message: cause.message, cause };
    }
    throw cause;
  }
}
