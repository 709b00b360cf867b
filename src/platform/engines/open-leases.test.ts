import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { reservePort } from '../../testing/servers/reserve-port.ts';
import { openLeases } from './open-leases.ts';

for (const [url, pattern] of [
  ['localhost:6379', /engine 'localhost:' is not supported/],
  ['', /must start with its engine: one of redis:, rediss:/],
  ['rediss+clusters://u:secret@h', /Did you mean rediss\+cluster:\?/],
  ['postgres://u:secret@h/db', /engine 'postgres:' is not supported/],
  ['redis://u:secret@h/shop', /database must be a number/],
  ['nats://u:secret@h/x', /use nats:/],
] as const) {
  test(`rejects '${url}' with the reason and without its password`, async () => {
    await assert.rejects(
      () => openLeases(url),
      (error) =>
        hasCode(error, 'CONFIG_INVALID') &&
        pattern.test(error.message) &&
        !error.message.includes('secret'),
    );
  });
}

for (const scheme of ['redis', 'redis+cluster', 'nats']) {
  test(`${scheme}: an address where nothing listens is a retryable error`, async () => {
    await using unused = await reservePort();
    await assert.rejects(
      () => openLeases(`${scheme}://${unused.host}:${unused.port}`),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
    );
  });
}
