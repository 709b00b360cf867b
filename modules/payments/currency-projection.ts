// `app:{core}:banking:currency:v1:USD`, its `index:by-code`, `set:all`, `set:enabled`, `zset:by-updated`.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { currencyCreated } from './currency.ts';

export interface CurrencyDocument {
  readonly code: string;
  readonly name: string;
  readonly decimals: number;
  readonly enabled: boolean;
  readonly updatedAt: string;
}

/** Both events say all that there is to say. */
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
