import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  account,
  accountOpened,
  accountReleased,
  accountReserved,
  accountSettled,
  openAccount,
  releaseAmount,
  reserveAmount,
  settleAmount,
} from './account.ts';

const opened = accountOpened({ currency: 'EUR', balance: 100 });
const reservation = { paymentId: 'p-1', amount: 60 };
const reserve = (paymentId: string, amount: number, currency = 'EUR') =>
  reserveAmount({ paymentId, amount, currency });

test('an account is opened once', () => {
  const opening = { currency: 'EUR', balance: 100 };
  given(account, []).when(openAccount(opening)).then([opened]);
  given(account, [opened]).when(openAccount(opening)).thenRejected('account-exists');
});

test('an amount reserved for one payment is not available to another', () => {
  given(account, [opened])
    .when(reserve('p-1', 60))
    .then([accountReserved(reservation)]);
  given(account, [opened, accountReserved(reservation)])
    .when(reserve('p-2', 41))
    .thenRejected('insufficient-funds');
  given(account, [opened, accountReserved(reservation)])
    .when(reserve('p-2', 40))
    .then([accountReserved({ paymentId: 'p-2', amount: 40 })]);
});

test('a repeated reservation of a payment has no effect', () => {
  given(account, [opened, accountReserved(reservation)])
    .when(reserve('p-1', 60))
    .then([]);
});

test('an unknown account or another currency rejects a reservation', () => {
  given(account, []).when(reserve('p-1', 1)).thenRejected('account-unknown');
  given(account, [opened])
    .when(reserve('p-1', 1, 'USD'))
    .thenRejected('wrong-currency');
});

test('a release frees the amount once', () => {
  const before = [opened, accountReserved(reservation)];
  given(account, before)
    .when(releaseAmount({ paymentId: 'p-1' }))
    .then([accountReleased(reservation)])
    .thenState({ currency: 'EUR', balance: 100, reserved: {} });
  given(account, [...before, accountReleased(reservation)])
    .when(releaseAmount({ paymentId: 'p-1' }))
    .then([]);
});

test('a settlement takes exactly the reserved amount', () => {
  given(account, [opened, accountReserved(reservation)])
    .when(settleAmount({ paymentId: 'p-1' }))
    .then([accountSettled(reservation)])
    .thenState({ currency: 'EUR', balance: 40, reserved: {} });
  given(account, [opened])
    .when(settleAmount({ paymentId: 'p-1' }))
    .thenRejected('nothing-reserved');
});
