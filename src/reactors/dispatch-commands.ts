// From a command's type to the handler of its aggregate.

import type { CommandRequest } from '../aggregates/command-handler.ts';
import { MillraceError } from '../foundation/error.ts';
import type { SendCommand } from './reaction.ts';

/** What `createCommandHandler` makes, whatever its commands are. */
export interface CommandReceiver {
  handle(request: CommandRequest<never>): Promise<unknown>;
}

/**
 * Sends each command to the handler of its aggregate: `account.deposit` to `account`.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { createCommandHandler, defineAggregate } from 'millrace/aggregates';
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { dispatchCommands } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const rung = defineEvent('bell.rung.v1', z.object({}));
 * const ring = defineCommand('bell.ring', z.object({}));
 * const bell = defineAggregate({
 *   bc: 'house',
 *   name: 'bell',
 *   version: 1,
 *   events: [rung],
 *   commands: [ring],
 *   initial: 0,
 *   evolve: { 'bell.rung.v1': (times) => times + 1 },
 *   decide: { 'bell.ring': () => rung({}) },
 * });
 *
 * await using store = memoryEventStore();
 * const send = dispatchCommands({ bell: createCommandHandler(store, bell) });
 * await send({ tenant: 'core', id: 'door', command: ring({}) });
 */
export function dispatchCommands(handlers: Readonly<Record<string, CommandReceiver>>): SendCommand {
  const known = new Map(Object.entries(handlers));
  return async (request) => {
    const { type } = request.command;
    const receiver = known.get(type.slice(0, type.indexOf('.')));
    if (receiver === undefined) {
      throw new MillraceError('COMMAND_UNKNOWN', `there is no handler for '${type}'`, {
        details: { command: type, aggregates: [...known.keys()] },
      });
    }
    // Which commands a handler takes is in the key that it was registered under.
    return receiver.handle(request as CommandRequest<never>);
  };
}
