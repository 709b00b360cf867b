// Every operation of /openapi.json × every kind of bad credentials is 401, except for a list of anonymous routes.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { openAllModules } from './api-of-all-modules.ts';

const secret = 's'.repeat(32);
const jwt = { secret, audience: 'millrace', issuer: 'https://id.example.org' };

const anonymous = [
  'delete /console/session',
  'get /console/session',
  'get /docs',
  'get /health/live',
  'get /health/ready',
  'get /openapi.json',
  'get /ws',
  'post /console/session',
];

test('each operation rejects each kind of bad credentials with 401', async () => {
  await using rig = await openAllModules({ jwt });
  const { tokens } = rig.platform;
  const revoked = await tokens.create({ name: 'revoked', scopes: ['admin'] });
  await tokens.revoke('revoked');
  const live = await tokens.create({ name: 'live', scopes: ['admin'] });
  const other = `${live.secret.slice(0, -1)}${live.secret.endsWith('A') ? 'E' : 'A'}`;
  const claims = { sub: 'ada', aud: 'millrace', iss: jwt.issuer, tenant: '*', scope: 'admin' };
  const inAnHour = Math.floor(Date.now() / 1_000) + 3_600;
  const bad: Readonly<Record<string, string>> = {
    'another scheme': `Basic ${Buffer.from(`live:${live.secret}`).toString('base64')}`,
    garbage: 'Bearer x',
    'revoked token': `Bearer ${revoked.secret}`,
    'another secret': `Bearer ${other}`,
    'unsigned JWT': `Bearer ${signed({ alg: 'none' }, { ...claims, exp: inAnHour }, '')}`,
    'JWT of another key': `Bearer ${signed({ alg: 'HS256' }, { ...claims, exp: inAnHour }, 'x')}`,
    'expired JWT': `Bearer ${signed({ alg: 'HS256' }, { ...claims, exp: 1 }, secret)}`,
    'JWT for another audience': `Bearer ${signed({ alg: 'HS256' }, { ...claims, aud: 'x', exp: inAnHour }, secret)}`,
    'JWT without a tenant': `Bearer ${signed({ alg: 'HS256' }, { ...claims, tenant: undefined, exp: inAnHour }, secret)}`,
  };
  const document = (await (await fetch(`${rig.api.url}/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  };
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method, path })),
  );
  assert.ok(operations.length > 150, `${operations.length} operations`);
  const open = new Set<string>();
  for (const { method, path } of operations) {
    const calling = (authorization: string | undefined) =>
      rig.call(method.toUpperCase(), path, authorization);
    if ((await calling(undefined)) !== 401) {
      open.add(`${method} ${path}`);
      continue;
    }
    const calls = Object.entries(bad).map(async ([kind, authorization]) =>
      assert.equal(await calling(authorization), 401, `${kind}: ${method} ${path}`),
    );
    await Promise.all(calls);
  }
  assert.deepEqual([...open].toSorted(), anonymous);
  // The same claims with the right key: the JWTs above fail for their named reason only.
  const valid = signed({ alg: 'HS256' }, { ...claims, exp: inAnHour }, secret);
  assert.equal(await rig.call('GET', '/admin/tokens', `Bearer ${valid}`), 200);
});

function signed(header: object, claims: object, key: string): string {
  const [head, body] = [header, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const signature = createHmac('sha256', key).update(`${head}.${body}`).digest('base64url');
  return `${head}.${body}.${key === '' ? '' : signature}`;
}
