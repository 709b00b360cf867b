import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig, withEnvironment, type Environment } from './millrace-config.ts';
import { rolesOf } from './platform-role.ts';

const within = (env: Environment, config = {}) => {
  const { outbox: _outbox, ...rest } = withEnvironment(config, { cwd: '/srv/app', env });
  // The copy omits members that are undefined.
  return JSON.parse(JSON.stringify(rest)) as typeof rest;
};

test('by default all data is in a file below the working directory', () => {
  assert.deepEqual(within({}), {
    engines: { store: 'sqlite:/srv/app/.millrace/events.db' },
    isProduction: false,
    localUrl: 'sqlite:/srv/app/.millrace/local.db',
    server: {},
  });
});

test('the environment has precedence over the file, and empty variables are ignored', () => {
  const config = { engines: { store: 'sqlite:a.db', keys: 'redis://a' }, server: { port: 1 } };
  const env = { MILLRACE_STORE: 'postgres://b/c', MILLRACE_KEYS: '', MILLRACE_PORT: '9' };
  const process = { MILLRACE_ROLES: 'api, workers', NODE_ENV: 'production' };
  assert.deepEqual(within({ ...env, ...process }, { ...config, localUrl: 'sqlite:b.db' }), {
    engines: { store: 'postgres://b/c', keys: 'redis://a' },
    isProduction: true,
    localUrl: 'sqlite:/srv/app/b.db',
    roles: ['api', 'workers'],
    server: { port: 9 },
  });
});

test('JWT keys of the environment keep the other JWT settings of the file', () => {
  const jwt = { secret: 'of the file', audience: 'shop', clockSkewSeconds: 5, tenantClaim: 'org' };
  const { server } = within({ MILLRACE_JWT_JWKS_URL: 'https://id/keys' }, { server: { jwt } });
  assert.deepEqual(server?.jwt, {
    jwksUrl: 'https://id/keys',
    audience: 'shop',
    clockSkewSeconds: 5,
    tenantClaim: 'org',
  });
});

for (const [what, env, pattern] of [
  ['a port that is none', { MILLRACE_PORT: '70000' }, /'70000' is not a port/],
  ['a role that is none', { MILLRACE_ROLES: 'worker' }, /Did you mean 'workers'/],
  ['JWTs without an audience', { MILLRACE_JWT_SECRET: 'x' }, /MILLRACE_JWT_AUDIENCE/],
] as const) {
  test(`${what} is reported with its name`, () => assert.throws(() => within(env), pattern));
}

test('roles are read from a list', () => assert.deepEqual(rolesOf('api'), ['api']));

test('a file is found, read, and checked', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'millrace-config-'));
  const load = (file: string) => loadConfig({ cwd, env: {}, file });
  try {
    await writeFile(join(cwd, 'millrace.config.mjs'), 'export default { server: { port: 7 } }');
    assert.equal((await loadConfig({ cwd, env: {} })).server?.port, 7);
    await writeFile(join(cwd, 'a.mjs'), 'export default { servr: {} }');
    await assert.rejects(load('a.mjs'), /Unknown setting "servr". Did you mean "server"\?/);
    await writeFile(join(cwd, 'b.mjs'), 'export const config = {}');
    await assert.rejects(load('b.mjs'), /no default export/);
    await writeFile(join(cwd, 'c.mjs'), 'throw new Error("broken")');
    await assert.rejects(load('c.mjs'), /cannot be loaded: broken/);
    await assert.rejects(load('d.mjs'), /cannot be loaded/);
  } finally {
    await rm(cwd, { recursive: true });
  }
});
