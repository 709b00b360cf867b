// The aggregate of the sample events: Millrace folds it with `defineAggregate`, the peers with its
// `evolve` function.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineEvent } from '../../src/contracts/index.ts';
import { balanceAfter, type Booking } from './sample-events.ts';

/** Events are only read here; their payloads were checked when they were created. */
const booking: StandardSchemaV1<Booking, Booking> = {
  '~standard': {
    version: 1,
    vendor: 'millrace-bench',
    validate: (value) => ({ value: value as Booking }),
  },
};
const deposited = defineEvent('account.deposited.v1', booking);
const withdrawn = defineEvent('account.withdrawn.v1', booking);

export const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [deposited, withdrawn],
  commands: [],
  initial: { balance: 0 },
  evolve: {
    'account.deposited.v1': ({ balance }, data, { type }) => ({
      balance: balanceAfter(balance, type, data),
    }),
    'account.withdrawn.v1': ({ balance }, data, { type }) => ({
      balance: balanceAfter(balance, type, data),
    }),
  },
  decide: {},
  snapshot: { every: 100 },
});
