import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../../engines/memory/index.ts';
import { openTokens } from '../../platform/tokens/open-tokens.ts';
import { authenticateByTokens } from './authenticate-by-tokens.ts';
import { kurrentStoreOptions } from './kurrent-server.ts';

test('accepts a token as a password with its name, or as a bearer token', async () => {
  await using store = openMemory(kurrentStoreOptions).store;
  await using tokens = await openTokens(store);
  const authenticate = authenticateByTokens(tokens);
  const { secret } = await tokens.create({ name: 'shop', tenant: 'core', scopes: ['append'] });
  const expected = { name: 'shop', tenant: 'core', scopes: ['append'] };
  for (const credentials of [
    { kind: 'basic', username: 'shop', password: secret },
    { kind: 'bearer', token: secret },
  ] as const) {
    const { ended, ...identity } = (await authenticate(credentials)) ?? assert.fail();
    assert.deepEqual(identity, expected);
    assert.equal(ended?.aborted, false);
  }
  assert.equal(await authenticate(undefined), undefined);
  assert.equal(await authenticate({ kind: 'bearer', token: 'x' }), undefined);
  assert.equal(
    await authenticate({ kind: 'basic', username: secret, password: 'shop' }),
    undefined,
  );
});
