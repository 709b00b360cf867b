// The account that payments are made from. A payment reserves its amount before the provider is called; later the
// amount is settled or released. Two payments can therefore never spend the same money.

import { defineAggregate, CommandRejected } from 'millrace/aggregates';
import { defineCommand, defineEvent } from 'millrace/contracts';
import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import { z } from 'zod';
import { amount, currencyCode } from './currency.ts';

const opening = z.object({ currency: currencyCode, balance: z.int().min(0) });
const reservation = z.object({ paymentId: z.string(), amount });
const reserving = reservation.extend({ currency: currencyCode });
const reserved = z.object({ paymentId: z.string() });

export const accountOpened = defineEvent('account.opened.v1', opening);
export const accountReserved = defineEvent('account.reserved.v1', reservation);
export const accountReleased = defineEvent('account.released.v1', reservation);
export const accountSettled = defineEvent('account.settled.v1', reservation);
export const openAccount = defineCommand('account.open', opening);
export const reserveAmount = defineCommand('account.reserve', reserving);
export const releaseAmount = defineCommand('account.release', reserved);
export const settleAmount = defineCommand('account.settle', reserved);

interface AccountState {
  /** Undefined until the account is opened. */
  readonly currency: string | undefined;
  readonly balance: number;
  /** Amounts by payment id, until settled or released. */
  readonly reserved: Readonly<Record<string, number>>;
}

const unopened: AccountState = { currency: undefined, balance: 0, reserved: {} };

export const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [accountOpened, accountReserved, accountReleased, accountSettled],
  commands: [openAccount, reserveAmount, releaseAmount, settleAmount],
  initial: unopened,
  evolve: {
    'account.opened.v1': (state, { currency, balance }) => ({ ...state, currency, balance }),
    'account.reserved.v1': (state, each) => ({
      ...state,
      reserved: { ...state.reserved, [each.paymentId]: each.amount },
    }),
    'account.released.v1': (state, each) => without(state, each.paymentId),
    'account.settled.v1': (state, each) => ({
      ...without(state, each.paymentId),
      balance: state.balance - each.amount,
    }),
  },
  decide: {
    'account.open': (payload, { currency }, { id }) => {
      if (currency !== undefined)
        throw new CommandRejected('account-exists', `Account ${id} is already open.`);
      return accountOpened(payload);
    },
    'account.reserve': ({ paymentId, ...wanted }, state, { id }) => {
      if (state.currency === undefined) {
        throw new CommandRejected('account-unknown', `Unknown account '${id}'.`);
      }
      if (state.currency !== wanted.currency) {
        throw new CommandRejected(
          'wrong-currency',
          `Account ${id} has the currency ${state.currency}.`,
        );
      }
      if (state.reserved[paymentId] !== undefined) return [];
      if (wanted.amount > available(state)) {
        throw new CommandRejected(
          'insufficient-funds',
          `Account ${id} has only ${available(state)} available.`,
        );
      }
      return accountReserved({ paymentId, amount: wanted.amount });
    },
    // No effect without a reservation: a compensation does not know how far the saga got.
    'account.release': ({ paymentId }, state) => {
      const reservedAmount = state.reserved[paymentId];
      return reservedAmount === undefined
        ? []
        : accountReleased({ paymentId, amount: reservedAmount });
    },
    'account.settle': ({ paymentId }, state, { id }) => {
      const reservedAmount = state.reserved[paymentId];
      if (reservedAmount === undefined) {
        throw new CommandRejected(
          'nothing-reserved',
          `Account ${id} has no reservation for payment ${paymentId}.`,
        );
      }
      return accountSettled({ paymentId, amount: reservedAmount });
    },
  },
});

function available({ balance, reserved: amounts }: AccountState): number {
  return Object.values(amounts).reduce((left, each) => left - each, balance);
}

function without(state: AccountState, paymentId: string): AccountState {
  const { [paymentId]: _ended, ...left } = state.reserved;
  return { ...state, reserved: left };
}

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
