// Handles commands of the modules' aggregates by command type, and loads such an aggregate.

import type {
  AggregateAddress,
  CommandRequest,
  CommandResult,
} from '../aggregates/attempt-command.ts';
import type { CommandHandler, LoadedAggregate } from '../aggregates/create-command-handler.ts';
import type { Aggregate } from '../aggregates/define-aggregate.ts';
import { createCommandHandler } from '../aggregates/create-command-handler.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { checkDocumentId } from '../contracts/redis-keys.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { PlatformEngines } from './engines/platform-engines.ts';
import type { ModuleBook } from './modules/platform-module.ts';

/** Reads an aggregate with every appended event; read models may lag. */
export type LoadAggregate = <State>(
  aggregate: Pick<Aggregate<State, NewEvent, NewCommand>, 'initial' | 'name'>,
  address: AggregateAddress,
) => Promise<LoadedAggregate<State>>;

/** Handles a command of any aggregate of the modules, by its type; its payload is checked. */
export type HandleCommand = (
  request: CommandRequest<NewCommand>,
) => Promise<CommandResult<unknown, NewEvent>>;

export interface PlatformCommands extends AsyncDisposable {
  readonly handle: HandleCommand;
  readonly load: LoadAggregate;
}

export interface CommandOptions {
  readonly observer: Observer;
  readonly clock: Clock;
  readonly tenants: TenantLookup;
}

export function bindCommands(
  engines: PlatformEngines,
  modules: ModuleBook,
  options: CommandOptions,
): PlatformCommands {
  const handlers: ReadonlyMap<string, CommandHandler<unknown, NewEvent, NewCommand>> = new Map(
    [...modules.aggregates].map(([name, aggregate]) => [
      name,
      createCommandHandler(engines, aggregate, options),
    ]),
  );
  const projected = new Set(
    modules.projections.map(({ readModel: { bc, aggregate } }) => `${bc}.${aggregate}`),
  );

  return {
    async handle(request) {
      const { type } = request.command;
      const name = type.slice(0, type.indexOf('.'));
      const [handler, aggregate] = [handlers.get(name), modules.aggregates.get(name)];
      if (handler === undefined || aggregate === undefined) {
        throw new MillraceError('COMMAND_UNKNOWN', `unknown command '${type}'`, {
          details: { command: type },
        });
      }
      const command = aggregate.parseCommand(request.command);
      // Otherwise the command would succeed, and the projection would dead-letter its event because of the id.
      const { bc, version } = aggregate;
      if (projected.has(`${bc}.${name}`)) {
        checkDocumentId(request.tenant, bc, name, version, request.id);
      }
      return handler.handle({ ...request, command });
    },
    async load<State>(aggregate: Parameters<LoadAggregate>[0], address: AggregateAddress) {
      const { name } = aggregate;
      const handler = handlers.get(name);
      if (handler !== undefined && modules.aggregates.get(name) === aggregate) {
        // This is the aggregate that the handler was created for, so the state has this type.
        return (await handler.load(address)) as LoadedAggregate<State>;
      }
      throw new MillraceError(
        'AGGREGATE_INVALID',
        `unknown aggregate '${name}': no module defines it`,
        {
          details: { aggregate: name },
        },
      );
    },
    async [Symbol.asyncDispose]() {
      const ended = [...handlers.values()].map((each) => each[Symbol.asyncDispose]());
      const failed = (await Promise.allSettled(ended)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
  };
}
