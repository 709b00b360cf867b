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
import type { AnyAggregate, ModuleBook } from './modules/platform-module.ts';

/** Reads an aggregate with every appended event; read models may lag. */
export type LoadAggregate = <State>(
  aggregate: Pick<Aggregate<State, NewEvent, NewCommand>, 'category' | 'initial'>,
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
    [...modules.aggregates].map(([category, aggregate]) => [
      category,
      createCommandHandler(engines, aggregate, options),
    ]),
  );
  const receivers = receiversByCommand(modules);
  const projected = new Set(
    modules.projections.map(({ readModel: { bc, aggregate } }) => `${bc}.${aggregate}`),
  );

  return {
    async handle(request) {
      const aggregate = receiverOf(request, receivers.get(request.command.type) ?? []);
      const { bc, name, version, category } = aggregate;
      const command = aggregate.parseCommand(request.command);
      // Otherwise the command would succeed, and the projection would dead-letter its event because of the id.
      if (projected.has(`${bc}.${name}`)) {
        checkDocumentId(request.tenant, bc, name, version, request.id);
      }
      const handler = handlers.get(category);
      if (handler === undefined) throw unknownAggregate(category);
      return handler.handle({ ...request, command });
    },
    async load<State>(aggregate: Parameters<LoadAggregate>[0], address: AggregateAddress) {
      const { category } = aggregate;
      const handler = handlers.get(category);
      if (handler !== undefined && modules.aggregates.get(category) === aggregate) {
        // This is the aggregate that the handler was created for, so the state has this type.
        return (await handler.load(address)) as LoadedAggregate<State>;
      }
      throw unknownAggregate(category);
    },
    async [Symbol.asyncDispose]() {
      const ended = [...handlers.values()].map((each) => each[Symbol.asyncDispose]());
      const failed = (await Promise.allSettled(ended)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    },
  };
}

function receiversByCommand({
  aggregates,
}: Pick<ModuleBook, 'aggregates'>): ReadonlyMap<string, readonly AnyAggregate[]> {
  const receivers = new Map<string, AnyAggregate[]>();
  for (const aggregate of aggregates.values()) {
    for (const { type } of aggregate.commands) {
      receivers.set(type, [...(receivers.get(type) ?? []), aggregate]);
    }
  }
  return receivers;
}

function receiverOf(
  { command: { type }, aggregate }: CommandRequest<NewCommand>,
  candidates: readonly AnyAggregate[],
): AnyAggregate {
  const categories = candidates.map(({ category }) => category);
  const [first] = candidates;
  if (first === undefined) {
    throw new MillraceError('COMMAND_UNKNOWN', `unknown command '${type}'`, {
      details: { command: type },
    });
  }
  if (aggregate !== undefined) {
    const named = candidates.find(({ category }) => category === aggregate);
    if (named !== undefined) return named;
    throw new MillraceError(
      'COMMAND_UNKNOWN',
      `unknown command '${type}' of '${aggregate}'; aggregates with this command: ${categories.join(', ')}`,
      { details: { command: type, aggregate, aggregates: categories } },
    );
  }
  if (candidates.length === 1) return first;
  throw new MillraceError(
    'COMMAND_AMBIGUOUS',
    `'${type}' is a command of ${categories.join(' and ')}: name one as aggregate`,
    { details: { command: type, aggregates: categories } },
  );
}

function unknownAggregate(category: string): MillraceError {
  return new MillraceError(
    'AGGREGATE_INVALID',
    `unknown aggregate '${category}': no module defines it`,
    { details: { aggregate: category } },
  );
}
