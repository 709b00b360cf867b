// What the outside hears of a command: one span, one count, and the trace that its events carry on.

import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { hasCode } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { traceOf } from '../foundation/trace-of.ts';
import type { CommandRequest, CommandResult } from './command-handler.ts';

type Headers = Readonly<Record<string, unknown>>;

/** Gives the work the headers for its events: the caller's, with this command's own trace. */
export async function observeCommand<State, Event extends NewEvent, Command extends NewCommand>(
  observer: Observer,
  aggregate: { readonly bc: string; readonly name: string },
  { tenant, command, correlationId, headers = {} }: CommandRequest<Command>,
  work: (headers: Headers) => Promise<CommandResult<State, Event>>,
): Promise<CommandResult<State, Event>> {
  const attributes = { bc: aggregate.bc, aggregate: aggregate.name, command: command.type, tenant };
  const span = observer.span?.(
    'handle command',
    { ...attributes, correlationId },
    traceOf(headers),
  );
  const count = (outcome: string): void =>
    observer.count?.('commands_handled_total', { ...attributes, outcome });
  try {
    const result = await work({ ...headers, ...span?.context });
    count(result.repeated ? 'repeated' : result.events.length === 0 ? 'unchanged' : 'accepted');
    return result;
  } catch (error) {
    const refused = hasCode(error, 'COMMAND_REFUSED');
    count(refused ? 'refused' : hasCode(error, 'VERSION_CONFLICT') ? 'conflict' : 'failed');
    // A refusal is an answer; only what went wrong is an error in the trace.
    if (!refused) span?.fail(error);
    throw error;
  } finally {
    span?.end();
  }
}
