// The account domain shared by the aggregate tests.

import { z } from 'zod';
import { defineCommand, type CommandOf } from '../../../contracts/define-command.ts';
import { defineEvent, type EventOf } from '../../../contracts/define-event.ts';
import { defineAggregate } from '../../../aggregates/define-aggregate.ts';
import { CommandRejected } from '../../../aggregates/command-rejected.ts';
import type { SnapshotPolicy } from '../../../aggregates/snapshots.ts';

const money = z.object({ amount: z.number().int().positive() });
export const opened = defineEvent('account.opened.v1', z.object({ owner: z.string() }));
export const deposited = defineEvent('account.deposited.v1', money);
export const withdrawn = defineEvent('account.withdrawn.v1', money);
export const feeCharged = defineEvent('account.fee-charged.v1', money);
export const renamed = defineEvent('account.renamed.v1', z.object({ owner: z.string() }));

export const open = defineCommand('account.open', z.object({ owner: z.string() }));
export const deposit = defineCommand('account.deposit', money);
export const withdraw = defineCommand('account.withdraw', money);
export const rename = defineCommand('account.rename', z.object({ owner: z.string() }));

export interface AccountState {
  readonly owner: string | null;
  readonly balance: number;
}

const noAccount: AccountState = { owner: null, balance: 0 };

export function accountWith(snapshot: Partial<SnapshotPolicy<AccountState>>) {
  return defineAggregate({
    bc: 'banking',
    name: 'account',
    version: 1,
    events: [opened, deposited, withdrawn, feeCharged, renamed],
    commands: [open, deposit, withdraw, rename],
    initial: noAccount,
    evolve: {
      'account.opened.v1': (state, { owner }) => ({ ...state, owner }),
      'account.deposited.v1': (state, { amount }) => ({
        ...state,
        balance: state.balance + amount,
      }),
      'account.withdrawn.v1': (state, { amount }) => ({
        ...state,
        balance: state.balance - amount,
      }),
      'account.fee-charged.v1': (state, { amount }) => ({
        ...state,
        balance: state.balance - amount,
      }),
      'account.renamed.v1': (state, { owner }) => ({ ...state, owner }),
    },
    decide: {
      'account.open': ({ owner }, state) => {
        if (state.owner !== null)
          throw new CommandRejected('already-open', 'the account is open already');
        return opened({ owner });
      },
      'account.deposit': ({ amount }, state) => {
        mustBeOpen(state);
        return deposited({ amount });
      },
      'account.withdraw': ({ amount }, state) => {
        mustBeOpen(state);
        // A fee of 1 above 50: this command produces two events.
        const fee = amount > 50 ? 1 : 0;
        if (amount + fee > state.balance) {
          throw new CommandRejected('insufficient-funds', `only ${state.balance} left`);
        }
        return fee === 0
          ? withdrawn({ amount })
          : [withdrawn({ amount }), feeCharged({ amount: fee })];
      },
      'account.rename': ({ owner }, state) => {
        mustBeOpen(state);
        return state.owner === owner ? [] : renamed({ owner });
      },
    },
    snapshot,
  });
}

function mustBeOpen({ owner }: AccountState): void {
  if (owner === null) throw new CommandRejected('not-open', 'unknown account');
}

export const account = accountWith({});
export type AccountEvent = EventOf<
  typeof opened | typeof deposited | typeof withdrawn | typeof feeCharged | typeof renamed
>;
export type AccountCommand = CommandOf<
  typeof open | typeof deposit | typeof withdraw | typeof rename
>;
