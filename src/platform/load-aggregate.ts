// Asking an aggregate itself, with everything that was appended: read models may lag behind.

import type { Aggregate } from '../aggregates/aggregate.ts';
import type { AggregateAddress, LoadedAggregate } from '../aggregates/command-handler.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';

export type LoadAggregate = <State>(
  aggregate: Pick<Aggregate<State, NewEvent, NewCommand>, 'initial' | 'name'>,
  address: AggregateAddress,
) => Promise<LoadedAggregate<State>>;
