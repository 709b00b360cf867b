// A module with projections, as a user writes it.

import { projection, readModel, type ProjectedEvent } from '../src/projections/index.ts';

interface Currency {
  readonly name: string;
}

type Renamed = ProjectedEvent<{ readonly name: string }>;

const modelOf = (version: number) =>
  readModel<Currency>({ bc: 'banking', aggregate: 'currency', version });

export const one = projection({
  name: 'sub:cli:names:v1',
  readModel: modelOf(1),
  on: { 'currency.renamed.v1': (_currency, { payload }: Renamed) => ({ name: payload.name }) },
});

export const two = projection({
  name: 'sub:cli:names:v2',
  readModel: modelOf(2),
  filter: { category: 'banking.currency.v1' },
  on: {
    'currency.renamed.v1': (_currency, { payload }: Renamed) => ({
      name: payload.name.toUpperCase(),
    }),
  },
});

export const broken = projection({
  name: 'sub:cli:names:v3',
  readModel: modelOf(3),
  filter: { category: 'banking.currency.v1' },
  retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1 },
  on: {
    'currency.renamed.v1': () => {
      throw new Error('it never works');
    },
  },
});
