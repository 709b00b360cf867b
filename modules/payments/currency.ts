// A currency and its read model; the id is the ISO 4217 code. Also the schemas of amounts and ids.

import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { defineCommand, defineEvent } from 'millrace/contracts';
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import { z } from 'zod';

const description = z.object({
  name: z.string().min(1).max(100),
  /** Digits after the decimal point: amounts are integers in the smallest unit. */
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
      if (exists) throw new CommandRejected('currency-exists', `Currency ${id} already exists.`);
      if (!/^[A-Z]{3}$/.test(id)) {
        throw new CommandRejected(
          'code-invalid',
          `Invalid currency code "${id}". Use ISO 4217, such as USD.`,
        );
      }
      return currencyCreated(payload);
    },
    'currency.update': (payload, { exists }, { id }) => {
      if (!exists) throw new CommandRejected('currency-unknown', `Unknown currency '${id}'.`);
      return currencyUpdated(payload);
    },
  },
});

export interface CurrencyDocument {
  readonly code: string;
  readonly name: string;
  readonly decimals: number;
  readonly enabled: boolean;
  readonly updatedAt: string;
}

/** Both events contain the whole description. */
type Described = ProjectedEvent<ReturnType<typeof currencyCreated.parse>>;

const described = (
  _before: CurrencyDocument | null,
  { aggregate, payload, occurredAt }: Described,
): CurrencyDocument => ({ code: aggregate.id, ...payload, updatedAt: occurredAt });

export const currencyProjection = projection({
  name: 'sub:core-lookup:currency-projection:v1',
  readModel: readModel<CurrencyDocument>({
    bc: 'banking',
    aggregate: 'currency',
    version: 1,
    indexes: { code: ({ code }) => code },
    sets: { enabled: ({ enabled }) => enabled },
    ranges: { updated: ({ updatedAt }) => Date.parse(updatedAt) },
  }),
  on: { 'currency.created.v1': described, 'currency.updated.v1': described },
});

/** In the smallest unit of its currency: 12.50 USD is 1250. */
export const amount = z.int().positive();
export const currencyCode = z.string().regex(/^[A-Z]{3}$/);
/** The id of an aggregate. */
export const streamId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);
