// The account that payments are made from. A payment reserves its amount before it goes to the provider;
// in the end the amount is settled or released, so that no two payments count on the same money.

import { defineAggregate, Refused } from 'millrace/aggregates';
import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { amount, currencyCode } from './money.ts';

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
  /** Undefined: it was never opened. */
  readonly currency: string | undefined;
  readonly balance: number;
  /** By payment, of those that are under way. */
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
      if (currency !== undefined) throw new Refused('account-exists', `${id} is open already`);
      return accountOpened(payload);
    },
    'account.reserve': ({ paymentId, ...wanted }, state, { id }) => {
      if (state.currency === undefined) {
        throw new Refused('account-unknown', `there is no account ${id}`);
      }
      if (state.currency !== wanted.currency) {
        throw new Refused('wrong-currency', `${id} is an account in ${state.currency}`);
      }
      if (state.reserved[paymentId] !== undefined) return [];
      if (wanted.amount > available(state)) {
        throw new Refused('insufficient-funds', `only ${available(state)} is available in ${id}`);
      }
      return accountReserved({ paymentId, amount: wanted.amount });
    },
    // Nothing reserved, nothing to release: who undoes need not know how far it had come.
    'account.release': ({ paymentId }, state) => {
      const held = state.reserved[paymentId];
      return held === undefined ? [] : accountReleased({ paymentId, amount: held });
    },
    'account.settle': ({ paymentId }, state, { id }) => {
      const held = state.reserved[paymentId];
      if (held === undefined) {
        throw new Refused('nothing-reserved', `${id} holds nothing for ${paymentId}`);
      }
      return accountSettled({ paymentId, amount: held });
    },
  },
});

function available({ balance, reserved: held }: AccountState): number {
  return Object.values(held).reduce((left, each) => left - each, balance);
}

function without(state: AccountState, paymentId: string): AccountState {
  const { [paymentId]: _ended, ...left } = state.reserved;
  return { ...state, reserved: left };
}
