// `app:{core}:banking:account:v1:<id>`: what an account holds, and what of it is spoken for.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { accountOpened, accountReserved } from './account.ts';

export interface AccountDocument {
  readonly currency: string;
  readonly balance: number;
  readonly reserved: number;
  readonly updatedAt: string;
}

type Opened = ProjectedEvent<ReturnType<typeof accountOpened.parse>>;
type Moved = ProjectedEvent<ReturnType<typeof accountReserved.parse>>;
type Signs = { readonly balance: 0 | -1; readonly reserved: 1 | -1 };

const moved =
  (signs: Signs) =>
  (before: AccountDocument | null, { payload, occurredAt }: Moved): AccountDocument | null =>
    before === null
      ? null
      : {
          ...before,
          balance: before.balance + signs.balance * payload.amount,
          reserved: before.reserved + signs.reserved * payload.amount,
          updatedAt: occurredAt,
        };

export const accountProjection = projection({
  name: 'sub:core-lookup:account-projection:v1',
  readModel: readModel<AccountDocument>({
    bc: 'banking',
    aggregate: 'account',
    version: 1,
    ranges: { updated: ({ updatedAt }) => Date.parse(updatedAt) },
  }),
  on: {
    'account.opened.v1': (_before, { payload, occurredAt }: Opened) => ({
      ...payload,
      reserved: 0,
      updatedAt: occurredAt,
    }),
    'account.reserved.v1': moved({ balance: 0, reserved: 1 }),
    'account.released.v1': moved({ balance: 0, reserved: -1 }),
    'account.settled.v1': moved({ balance: -1, reserved: -1 }),
  },
});
