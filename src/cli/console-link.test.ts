import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { hasCode } from '../foundation/error.ts';
import { openTokens } from '../platform/tokens/open-tokens.ts';
import { consoleLine } from './console-link.ts';
import { createPaint } from './terminal/paint.ts';

const url = 'http://127.0.0.1:7480';
const paint = createPaint(false);

test('the banner has a link on a terminal that signs in once, and no link in a log', async () => {
  await using db = openMemory();
  await using tokens = await openTokens(db.store);
  const { secret } = await tokens.create({ name: 'admin', scopes: ['admin'] });
  const token = { name: 'admin', secret, file: '/shop/.millrace/admin.token' };

  const [name, text] = await consoleLine({ isTTY: true, paint }, { url, token, tokens });
  assert.equal(name, 'console');
  const [, code = ''] =
    /^http:\/\/127\.0\.0\.1:7480\/console\/#link=(\S+)  \(signs in once, within 10 minutes\)$/.exec(
      text,
    ) ?? [];
  assert.equal((await tokens.useLink(code)).name, 'admin');
  await assert.rejects(
    () => tokens.useLink(code),
    (error: unknown) => hasCode(error, 'NOT_AUTHENTICATED'),
  );
  assert.equal(text.includes(secret), false);

  const plain = `${url}/console/  (millrace console link)`;
  const inLog = await consoleLine({ isTTY: false, paint }, { url, token, tokens });
  assert.deepEqual(inLog, ['console', plain]);
  const withoutToken = await consoleLine({ isTTY: true, paint }, { url, token: undefined, tokens });
  assert.deepEqual(withoutToken, ['console', plain]);
});
