import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from './error.ts';
import { loadDriver } from './load-driver.ts';

test('a missing driver is reported with the name to install', async () => {
  const name = 'no-such-driver';
  await assert.rejects(
    loadDriver(name, () => import(name) as Promise<unknown>),
    (error) =>
      hasCode(error, 'DRIVER_MISSING') && error.message.includes('npm install no-such-driver'),
  );
});

test('an error that a driver throws while it loads is not changed', async () => {
  await assert.rejects(
    loadDriver('pg', () => Promise.reject(new Error('bad binary'))),
    /bad binary/,
  );
});
