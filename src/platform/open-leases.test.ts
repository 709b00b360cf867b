import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { freePort } from '../testing/servers/free-port.ts';
import { openLeases } from './open-leases.ts';

for (const [url, said] of [
  ['localhost:6379', /no leases in 'localhost:'/],
  ['', /begins with one of redis:, rediss:/],
  ['rediss+clusters://u:secret@h', /Did you mean rediss\+cluster:\?/],
  ['postgres://u:secret@h/db', /no leases in 'postgres:'/],
  ['redis://u:secret@h/shop', /database is a number/],
  ['nats://u:secret@h/x', /looks like nats:/],
] as const) {
  test(`refuses '${url}' and says why, without its password`, async () => {
    await assert.rejects(
      () => openLeases(url),
      (error) =>
        hasCode(error, 'CONFIG_INVALID') &&
        said.test(error.message) &&
        !error.message.includes('secret'),
    );
  });
}

for (const scheme of ['redis', 'redis+cluster', 'nats']) {
  test(`${scheme}: where nobody answers is told, and can be tried again`, async () => {
    const port = await freePort();
    await assert.rejects(
      () => openLeases(`${scheme}://127.0.0.1:${port}`),
      (error) => hasCode(error, 'STORE_UNAVAILABLE') && error.retryable,
    );
  });
}
