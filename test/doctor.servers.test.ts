// `millrace doctor` against real servers: healthy, unreachable, hanging, unsafe, and with wrong credentials.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import pg from 'pg';
import { openMemory } from '../src/engines/memory/index.ts';
import { eventStoreSchema, examineEngines, type EngineUrls } from '../src/platform/index.ts';
import { startKurrentServer } from '../src/server/kurrent/index.ts';
import { startNats, startPostgres, startRedis } from '../src/testing/index.ts';
import { runMillrace, spawnMillrace } from './cli-store-terminal.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-doctor-'));
});
after(() => rm(folder, { recursive: true, force: true }));

const timeoutMs = 60_000;

/** Lists `check: level` for the engine of this role. */
async function levels(
  engines: EngineUrls,
  role: keyof EngineUrls,
  options: {
    readonly timeoutMs?: number;
    readonly migrate?: 'auto' | 'off';
  } = {},
) {
  const reports = await examineEngines(engines, { timeoutMs, ...options });
  const found = reports.find(({ roles }) => roles.includes(role))?.findings ?? [];
  const by = (check: string) => found.find((each) => each.check === check);
  return { found, by, signs: found.map(({ check, level }) => `${check}: ${level}`) };
}

const sqlite = (): string => `sqlite:${join(folder, 'events.db')}`;

test('PostgreSQL: every check passes on a safe server, and the checks change nothing', async () => {
  await using server = await startPostgres({ fsync: true });
  const store = await server.createDatabase();
  const fresh = await levels({ store }, 'store');
  assert.deepEqual(
    fresh.signs.filter((each) => !/^(read|durable write)/.test(each)),
    [
      'reachable: ok',
      'version: ok',
      'permissions of millrace: ok',
      'permissions of core_outbox: ok',
      'settings: ok',
      'clock skew: ok',
      'schema: ok',
      'outbox schema: ok',
    ],
  );
  assert.match(fresh.by('durable write')?.detail ?? '', / ms$/);
  const schema = await eventStoreSchema(store);
  assert.equal((await schema.pending()).length, schema.steps.length);
  const off = await levels({ store }, 'store', { migrate: 'off' });
  assert.equal(off.by('schema')?.level, 'broken');
  assert.match(off.by('schema')?.remedy ?? '', /millrace migrate/);

  // From here on the server asks for passwords, and the role `clerk` has few permissions.
  await schema.migrate();
  const admin = new pg.Client(store);
  await admin.connect();
  await admin.query(
    `create role clerk login password 's3cret'; grant usage on schema millrace to clerk`,
  );
  await writeFile(
    join(server.folder, 'data/pg_hba.conf'),
    'host all all 127.0.0.1/32 scram-sha-256\n',
  );
  await admin.query('select pg_reload_conf()');
  await admin.end();
  const as = (password: string): string => store.replace('postgres@', `clerk:${password}@`);
  const clerk = await levels({ store: as('s3cret') }, 'store');
  const tables = clerk.by('permissions of millrace');
  assert.equal(tables?.level, 'broken');
  assert.match(tables?.detail ?? '', /may not use .*events/);
  assert.match(tables?.remedy ?? '', /grant select, insert/);
  assert.equal(clerk.by('permissions of core_outbox')?.level, 'broken');
  const wrong = await levels({ store: as('wr0ng') }, 'store');
  assert.deepEqual(wrong.signs, ['reachable: broken']);
  assert.match(wrong.found[0]?.remedy ?? '', /user and password/);
  assert.doesNotMatch(JSON.stringify(wrong.found), /wr0ng/);
});

test('PostgreSQL: warns of settings that can lose commits, and reports a server that hangs', async () => {
  const settings = { synchronous_commit: 'off', full_page_writes: 'off' };
  await using server = await startPostgres({ fsync: false, settings });
  const store = await server.createDatabase();
  const unsafe = (await levels({ store }, 'store')).found
    .filter(({ level }) => level === 'warning' || level === 'broken')
    .filter(({ check }) => check === 'settings')
    .map(({ detail }) => detail.split(':')[0]);
  const wanted = ['fsync = off', 'full_page_writes = off', 'synchronous_commit = off'];
  assert.deepEqual(new Set(unsafe), new Set(wanted));
  server.pause();
  const hung = await levels({ store }, 'store', { timeoutMs: 200 });
  server.resume();
  assert.deepEqual(hung.signs, ['reachable: broken']);
  assert.match(hung.found[0]?.detail ?? '', /no response within 200 ms/);
});

test('Redis: every check passes on a safe server; eviction and missing persistence are warnings; a wrong password is reported', async () => {
  await using safe = await startRedis({ appendOnly: 'always' });
  const admin = new Redis(safe.url);
  await admin.config('SET', 'requirepass', 's3cret');
  admin.disconnect();
  const url = (password: string): string => safe.url.replace('://', `://:${password}@`);
  const good = await levels({ store: sqlite(), keys: url('s3cret') }, 'keys');
  assert.deepEqual(
    good.signs.filter((each) => !/^(read|durable write)/.test(each)),
    ['reachable: ok', 'version: ok', 'permissions: ok', 'settings: ok', 'clock skew: ok'],
  );
  const wrong = await levels({ store: sqlite(), keys: url('wr0ng') }, 'keys');
  assert.deepEqual(wrong.signs, ['reachable: broken']);
  assert.match(wrong.found[0]?.remedy ?? '', /user and password/);
  assert.doesNotMatch(JSON.stringify(wrong.found), /wr0ng/);

  const forgetting = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' };
  await using unsafe = await startRedis({ settings: forgetting });
  const risky = await levels({ store: sqlite(), keys: unsafe.url }, 'keys');
  assert.deepEqual(
    risky.found
      .filter(({ level }) => level === 'warning')
      .map(({ detail }) => detail.split(':')[0]),
    ['appendonly no', 'maxmemory-policy allkeys-lru'],
  );
});

test('NATS: reports the version, the sync interval and a wrong token', async () => {
  await using server = await startNats({ settings: { authorization: '{ token: "s3cret" }' } });
  const url = (token: string): string => server.url.replace('://', `://${token}@`);
  const good = await levels({ store: sqlite(), keys: url('s3cret') }, 'keys');
  assert.deepEqual(
    good.signs.filter((each) => !/^(read|settings)/.test(each)),
    ['reachable: ok', 'version: ok', 'permissions: ok'],
  );
  assert.match(good.by('settings')?.remedy ?? '', /sync_interval: always/);
  const wrong = await levels({ store: sqlite(), keys: url('wr0ng') }, 'keys');
  assert.deepEqual(wrong.signs, ['reachable: broken']);
  assert.match(wrong.found[0]?.remedy ?? '', /token/);
});

test('tasks: checks every engine that can keep jobs, and warns if it could lose them', async () => {
  await using redis = await startRedis({ appendOnly: 'always' });
  await using nats = await startNats();
  const file = `sqlite:${join(folder, 'jobs.db')}`;
  const signsOf = async (tasks: string) =>
    (await levels({ store: sqlite(), tasks }, 'tasks')).signs;
  const steady = (signs: readonly string[]) =>
    signs.filter((each) => !/^(read|durable write|settings)/.test(each));
  const served = ['reachable: ok', 'version: ok', 'permissions: ok'];
  assert.deepEqual(steady(await signsOf(redis.url)), [...served, 'clock skew: ok']);
  assert.deepEqual(steady(await signsOf(nats.url)), served);
  const own = await signsOf(file);
  assert.ok(
    own.includes('reachable: ok') && own.every((each) => !each.endsWith(': broken')),
    own.join(),
  );

  // Jobs are not a cache: the doctor warns of a Redis that evicts keys or does not persist them.
  const forgetting = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' };
  await using unsafe = await startRedis({ settings: forgetting });
  const risky = await levels({ store: sqlite(), tasks: unsafe.url }, 'tasks');
  assert.deepEqual(
    risky.found
      .filter(({ level }) => level === 'warning')
      .map(({ detail }) => detail.split(':')[0]),
    ['appendonly no', 'maxmemory-policy allkeys-lru'],
  );
  await nats.stop();
  assert.deepEqual(await signsOf(nats.url), ['reachable: broken']);
});

test('tasks: reports an error in the file of task types, with the name of the field', async () => {
  const cwd = await mkdtemp(join(folder, 'types-'));
  const file = join(cwd, 'millrace.tasks.yaml');
  await writeFile(file, 'task_types:\n  email-send:\n    workers: 4\n    step_timeout: 30s\n');
  const good = await runMillrace(['doctor'], { cwd });
  assert.equal(good.code, 0, good.stdout);
  assert.match(good.stdout, /✓ task types +1 in millrace\.tasks\.yaml/);
  await writeFile(file, 'task_types:\n  email-send:\n    workers: many\n');
  const bad = await runMillrace(['doctor'], { cwd });
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /✗ task types .*workers/);
});

test('KurrentDB: checks a server that speaks its protocol', async () => {
  await using db = openMemory();
  await using server = await startKurrentServer(db.store, { port: 0 });
  const found = await levels({ store: server.url, outbox: sqlite() }, 'store');
  assert.deepEqual(
    found.signs.filter((each) => !each.startsWith('read:')),
    ['reachable: ok', 'permissions: ok'],
  );
});

test('reports an unreachable server for each engine, with a remedy', async () => {
  for (const store of [
    'postgres://u:s3cret@127.0.0.1:1/shop',
    // The MongoDB driver waits this long for a server.
    'mongodb://u:s3cret@127.0.0.1:1/shop?serverSelectionTimeoutMS=200',
    'kurrentdb://u:s3cret@127.0.0.1:1?tls=false',
  ]) {
    const { signs, found } = await levels({ store, outbox: sqlite() }, 'store');
    assert.deepEqual(signs, ['reachable: broken'], store);
    assert.match(found[0]?.remedy ?? '', /whether the server runs/, store);
  }
});

test('SQLite: reports a file that is not a database', async () => {
  const path = join(folder, 'letter.txt');
  await writeFile(path, 'Dear database, '.repeat(100));
  const other = await levels({ store: `sqlite:${path}` }, 'store');
  assert.deepEqual(other.signs, ['reachable: broken']);
  assert.match(other.found[0]?.remedy ?? '', /not an SQLite database/);
});

test('prints text or JSON without passwords, and exits with 1 if a check fails', async () => {
  const keys = 'redis://:s3cret@127.0.0.1:1';
  const good = await spawnMillrace(['doctor', '--json'], { cwd: folder });
  assert.equal(good.code, 0, good.stderr);
  const report = JSON.parse(good.stdout) as {
    readonly ok: boolean;
    readonly subjects: readonly { readonly subject: string }[];
    readonly roles: readonly { readonly role: string; readonly engine?: string }[];
  };
  assert.deepEqual(
    [report.ok, report.subjects.map(({ subject }) => subject)],
    [true, ['process', 'configuration', 'store, outbox']],
  );
  const engineOf = (name: string) => report.roles.find(({ role }) => role === name)?.engine;
  for (const role of ['store', 'outbox', 'readModels', 'sagas', 'keys']) {
    assert.equal(engineOf(role), 'SQLite', role);
  }
  const broken = await runMillrace(['doctor'], { cwd: folder, env: { MILLRACE_KEYS: keys } });
  assert.equal(broken.code, 1);
  assert.match(broken.stdout, /✗ reachable .*ECONNREFUSED/);
  assert.match(broken.stdout, /✓ node/);
  assert.doesNotMatch(broken.stdout + broken.stderr, /s3cret/);
  const odd = await runMillrace(['doctor'], {
    cwd: folder,
    env: { MILLRACE_STORE: 'postgre://x' },
  });
  assert.equal(odd.code, 1);
  assert.match(odd.stdout, /✗ config .*Did you mean postgres:/);
});
