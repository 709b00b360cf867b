// Our server on SQLite with every commit synced, with one aggregate and its read model.

import type { StandardSchemaV1 } from '@standard-schema/spec';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { createPlatform, defineModule } from '../../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../../src/projections/index.ts';
import { startApi } from '../../src/server/api/index.ts';
import { file, listening } from './serve-http.ts';

interface Money {
  readonly amount: number;
}

const money: StandardSchemaV1<Money, Money> = {
  '~standard': {
    version: 1,
    vendor: 'millrace-bench',
    validate: (value) =>
      typeof (value as Money).amount === 'number'
        ? { value: value as Money }
        : { issues: [{ message: 'amount must be a number' }] },
  },
};
const deposited = defineEvent('account.deposited.v1', money);
const deposit = defineCommand('account.deposit', money);
const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [deposited],
  commands: [deposit],
  initial: { balance: 0 },
  evolve: { 'account.deposited.v1': ({ balance }, { amount }) => ({ balance: balance + amount }) },
  decide: { 'account.deposit': ({ amount }) => deposited({ amount }) },
});
const balances = projection({
  name: 'sub:banking:balances:v1',
  readModel: readModel<{ readonly balance: number }>({
    bc: 'banking',
    aggregate: 'account',
    version: 1,
  }),
  on: {
    'account.deposited.v1': (before, { payload }: ProjectedEvent<Money>) => ({
      balance: (before?.balance ?? 0) + payload.amount,
    }),
  },
});

const platform = await createPlatform({
  engines: { store: `sqlite:${file}` },
  modules: [
    defineModule({
      name: 'banking',
      aggregates: [account],
      commands: { 'account.deposit': 'append' },
      projections: [balances],
    }),
  ],
});
await platform.start();
const unlimited = { perSecond: 1_000_000, burst: 1_000_000 };
const api = await startApi(platform, {
  port: 0,
  rateLimits: { known: unlimited, unknown: unlimited },
});
const { secret } = await platform.tokens.create({ name: 'bench', scopes: ['admin'] });
listening(api.port, secret);
