// Commands of all modules' aggregates, by their types; and what such an aggregate is now.

import type {
  AggregateAddress,
  CommandHandler,
  CommandRequest,
  CommandResult,
  LoadedAggregate,
} from '../aggregates/command-handler.ts';
import { createCommandHandler } from '../aggregates/create-command-handler.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import { redisKeys } from '../contracts/redis-keys.ts';
import type { TenantLookup } from '../contracts/tenant.ts';
import type { Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import type { LoadAggregate } from './load-aggregate.ts';
import type { PlatformEngines } from './platform-engines.ts';
import type { ModuleBook } from './platform-module.ts';

export interface PlatformCommands extends AsyncDisposable {
  readonly handle: (
    request: CommandRequest<NewCommand>,
  ) => Promise<CommandResult<unknown, NewEvent>>;
  readonly load: LoadAggregate;
}

export interface CommandOptions {
  readonly observer: Observer;
  readonly clock: Clock;
  readonly tenants: TenantLookup;
}

export function bindCommands(
  { store, aggregates }: PlatformEngines,
  modules: ModuleBook,
  options: CommandOptions,
): PlatformCommands {
  const handlers: ReadonlyMap<string, CommandHandler<unknown, NewEvent, NewCommand>> = new Map(
    [...modules.aggregates].map(([name, aggregate]) => [
      name,
      createCommandHandler(store, aggregate, { ...aggregates, ...options }),
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
        throw new MillraceError('COMMAND_UNKNOWN', `there is no command '${type}'`, {
          details: { command: type },
        });
      }
      const command = aggregate.parseCommand(request.command);
      // An id that no key may hold would be accepted here, and a dead letter of the projection later.
      const { bc, version } = aggregate;
      if (projected.has(`${bc}.${name}`)) {
        redisKeys.hash(request.tenant, bc, name, version, request.id);
      }
      return handler.handle({ ...request, command });
    },
    async load<State>(aggregate: Parameters<LoadAggregate>[0], address: AggregateAddress) {
      const { name } = aggregate;
      const handler = handlers.get(name);
      if (handler !== undefined && modules.aggregates.get(name) === aggregate) {
        // The very one that the handler was made for: its state is of that type.
        return (await handler.load(address)) as LoadedAggregate<State>;
      }
      throw new MillraceError('AGGREGATE_INVALID', `'${name}' is no aggregate of a module`, {
        details: { aggregate: name },
      });
    },
    async [Symbol.asyncDispose]() {
      const ended = [...handlers.values()].map((each) => each[Symbol.asyncDispose]());
      const failed = (await Promise.allSettled(ended)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
  };
}
