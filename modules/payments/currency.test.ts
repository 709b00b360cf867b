import { test } from 'node:test';
import { given } from 'millrace/testing';
import {
  createCurrency,
  currency,
  currencyCreated,
  currencyUpdated,
  updateCurrency,
} from './currency.ts';

const rand = { name: 'South African Rand', decimals: 2, enabled: true };

test('a currency is created once, under its code', () => {
  given(currency, [])
    .when(createCurrency(rand), { id: 'ZAR' })
    .then([currencyCreated(rand)]);
  given(currency, [currencyCreated(rand)])
    .when(createCurrency(rand), { id: 'ZAR' })
    .thenRejected('currency-exists');
  given(currency, []).when(createCurrency(rand), { id: 'rand' }).thenRejected('code-invalid');
});

test('only an existing currency is updated', () => {
  const disabled = { ...rand, enabled: false };
  given(currency, [currencyCreated(rand)])
    .when(updateCurrency(disabled))
    .then([currencyUpdated(disabled)]);
  given(currency, []).when(updateCurrency(disabled)).thenRejected('currency-unknown');
});
