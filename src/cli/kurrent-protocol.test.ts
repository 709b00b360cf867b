import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kurrentLines } from './kurrent-protocol.ts';
import { createPaint } from './terminal/paint.ts';

const url = 'kurrentdb://localhost:2113?tls=true';
const token = { name: 'admin', secret: 'mr_secret', file: '/shop/.millrace/admin.token' };

test('the connection string has the secret on a terminal, and the path of its file elsewhere', () => {
  const shown = (isTTY: boolean, kept: typeof token | undefined) =>
    kurrentLines(
      { isTTY, paint: createPaint(false) },
      { url, kurrentAuth: 'tokens', token: kept, tokens: 1 },
    )[0]?.[1];
  assert.equal(shown(true, token), '"kurrentdb://admin:mr_secret@localhost:2113?tls=true"');
  assert.equal(
    shown(false, token),
    `"kurrentdb://admin:$(cat '/shop/.millrace/admin.token')@localhost:2113?tls=true"`,
  );
  assert.equal(shown(true, undefined), '"kurrentdb://<token>:<secret>@localhost:2113?tls=true"');
});
