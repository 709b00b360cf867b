// A currency of the lookup: its id is its code, and its code never changes.

import { defineAggregate, Refused } from 'millrace/aggregates';
import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';

const description = z.object({
  name: z.string().min(1).max(100),
  /** How many digits stand behind the point: amounts are whole numbers of the smallest unit. */
  decimals: z.int().min(0).max(4),
  enabled: z.boolean(),
});

export const currencyCreated = defineEvent('currency.created.v1', description);
export const currencyUpdated = defineEvent('currency.updated.v1', description);
export const createCurrency = defineCommand('currency.create', description);
export const updateCurrency = defineCommand('currency.update', description);

interface CurrencyState {
  readonly exists: boolean;
}

const missing: CurrencyState = { exists: false };

export const currency = defineAggregate({
  bc: 'banking',
  name: 'currency',
  version: 1,
  events: [currencyCreated, currencyUpdated],
  commands: [createCurrency, updateCurrency],
  initial: missing,
  evolve: {
    'currency.created.v1': () => ({ exists: true }),
    'currency.updated.v1': (state) => state,
  },
  decide: {
    'currency.create': (payload, { exists }, { id }) => {
      if (exists) throw new Refused('currency-exists', `${id} is there already`);
      if (!/^[A-Z]{3}$/.test(id)) {
        throw new Refused('code-invalid', `'${id}' is no code of ISO 4217, such as USD`);
      }
      return currencyCreated(payload);
    },
    'currency.update': (payload, { exists }, { id }) => {
      if (!exists) throw new Refused('currency-unknown', `there is no currency ${id}`);
      return currencyUpdated(payload);
    },
  },
});
