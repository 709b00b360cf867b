// The currencies of the naming document: a read model, and a handler with an effect outside of the database.

import { defineModule } from '../../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../../src/projections/index.ts';
import type { RecordedEvent } from '../../src/store/index.ts';
import { subscription } from '../../src/subscriptions/index.ts';

export interface Currency {
  readonly code: string;
  readonly name: string;
}

export function bankingOf(aggregate: string, onMail: (event: RecordedEvent) => void) {
  const currencies = projection({
    name: `sub:core-lookup:${aggregate}-projection:v1`,
    readModel: readModel<Currency>({
      bc: 'banking',
      aggregate,
      version: 1,
      indexes: { code: ({ code }) => code },
    }),
    on: {
      [`${aggregate}.created.v1`]: (_before, { payload }: ProjectedEvent<Currency>) => payload,
    },
  });
  const reactor = `sub:core-lookup:${aggregate}-mail:v1`;
  const mails = subscription({
    name: reactor,
    filter: { category: `banking.${aggregate}.v1` },
    handler: (event) => onMail(event),
  });
  const module = defineModule({
    name: 'banking',
    projections: [currencies],
    subscriptions: [mails],
  });
  return { currencies, reactor, module };
}
