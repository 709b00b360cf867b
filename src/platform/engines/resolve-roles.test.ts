import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { urlForms, type EngineName } from '../../contracts/engine-url.ts';
import { engineTable, roleTable, type RoleName } from './engine-table.ts';
import { hasRole, resolveRoles, type EngineUrls, type Need } from './resolve-roles.ts';
import { roleReport } from './role-report.ts';

const roleNames = Object.keys(roleTable) as readonly RoleName[];
const engineNames = Object.keys(engineTable) as readonly EngineName[];
const urlOf = (engine: EngineName | undefined): string | undefined =>
  engine === undefined ? undefined : urlForms[engine].example.replace('user:password@', '');
const needAll = (need: Need) => Object.fromEntries(roleNames.map((role) => [role, need]));

/** Engine by role; `off` without an engine. */
function enginesOf(urls: EngineUrls, needs = needAll('required')): Record<string, string> {
  return Object.fromEntries(
    resolveRoles({ urls, needs }).map(({ role, target }) => [role, target?.engine ?? 'off']),
  );
}

test('without a URL every role is in one SQLite file', () => {
  const roles = resolveRoles({ urls: {}, needs: needAll('required') });
  assert.equal(new Set(roles.map(({ target }) => target)).size, 1);
  assert.match(roles[0]?.target?.connection ?? '', /^sqlite:.*\/\.millrace\/events\.db$/);
});

test('a role is filled by its own URL, else by the store, the outbox or the keys', () => {
  const engines = enginesOf({
    store: 'kurrentdb://h:2113',
    outbox: 'postgres://h/shop',
    keys: 'redis://h:6379',
  });
  assert.deepEqual(engines, {
    store: 'kurrentdb',
    subscriptions: 'postgres',
    snapshots: 'postgres',
    traces: 'postgres',
    outbox: 'postgres',
    readModels: 'redis',
    sagas: 'redis',
    leases: 'redis',
    keys: 'redis',
    bus: 'redis',
    tasks: 'redis',
    queue: 'redis',
  });
});

test('KurrentDB or MongoDB with Redis alone needs no SQL database', () => {
  for (const [store, engine] of [
    ['esdb://h:2113?tls=false', 'redis'],
    ['mongodb://h/shop', 'mongodb'],
  ] as const) {
    const urls = { store, keys: 'redis://h:6379' };
    const needs = { ...needAll('required'), outbox: 'optional', traces: 'optional' } as const;
    const roles = resolveRoles({ urls, needs, isProduction: true });
    assert.deepEqual(
      roles.filter(({ target }) => target === undefined).map(({ role }) => role),
      ['traces', 'outbox'],
    );
    for (const [name, expected] of [
      ['subscriptions', engine],
      ['snapshots', engine],
      ['leases', 'redis'],
    ] as const) {
      const found = roles.find(({ role }) => role === name);
      assert.deepEqual([found?.target?.engine, found?.warning], [expected, undefined]);
    }
  }
});

test('checkpoints of a MongoDB store stay in the database of its outbox', () => {
  const store = 'mongodb://h/shop';
  const outbox = 'postgres://h/shop';
  const engines = enginesOf({ store, outbox, keys: 'redis://h:6379' });
  assert.deepEqual([engines['subscriptions'], engines['snapshots']], ['postgres', 'postgres']);
  assert.deepEqual(enginesOf({ store })['subscriptions'], 'mongodb');
});

test('checkpoints without an engine name both settings that fill the role', () => {
  assert.throws(
    () =>
      resolveRoles({
        urls: { store: 'kurrentdb://h' },
        needs: { subscriptions: 'required' },
        isProduction: true,
      }),
    (error) =>
      hasCode(error, 'CONFIG_INVALID') &&
      /set MILLRACE_OUTBOX, for example to sqlite:\S+ or postgres:\S+, or MILLRACE_KEYS, for example to redis:/.test(
        error.message,
      ),
  );
});

test('the keys may name an engine that has only some of their roles', () => {
  const engines = enginesOf({ store: 'postgres://h/shop', keys: 'nats://h:4222' });
  assert.equal(engines['leases'], 'nats');
  assert.equal(engines['readModels'], 'postgres');
  assert.equal(engines['bus'], 'nats');
});

test('tasks are in the engine of the bus, unless they have a URL', () => {
  const store = 'postgres://h/shop';
  assert.equal(enginesOf({ store, bus: 'nats://h:4222' })['tasks'], 'nats');
  assert.equal(
    enginesOf({ store, bus: 'nats://h:4222', tasks: 'redis://h:6379' })['tasks'],
    'redis',
  );
});

test('URLs of one database give one target, so that it is opened once', () => {
  const [store, outbox] = ['postgres://h/shop?schema=events', 'postgres://h/shop'];
  const roles = resolveRoles({ urls: { store, outbox }, needs: {} });
  const targetOf = (name: RoleName) => roles.find(({ role }) => role === name)?.target;
  assert.equal(targetOf('store'), targetOf('outbox'));
  const other = resolveRoles({ urls: { store, outbox: `${outbox}?schema=other` }, needs: {} });
  assert.equal(new Set(other.flatMap(({ target }) => target ?? [])).size, 2);
});

test('a required role that no engine has lands in a local file with a warning that names the setting', () => {
  const urls = { store: 'postgres://h/shop' };
  const roles = resolveRoles({ urls, needs: { bus: 'required', tasks: 'required' } });
  for (const name of ['bus', 'tasks'] as const) {
    const found = roles.find(({ role }) => role === name);
    assert.equal(found?.target?.engine, 'sqlite');
    assert.match(found?.warning ?? '', new RegExp(`set MILLRACE_${name.toUpperCase()}`));
    assert.match(found?.warning ?? '', /which other processes do not see, is used instead/);
  }
  assert.equal(new Set(roles.flatMap(({ target }) => target ?? [])).size, 2);
});

test('in production a local file is used only if it was configured', () => {
  const urls = { store: 'postgres://h/shop' };
  const needs = { bus: 'required' } as const;
  assert.throws(
    () => resolveRoles({ urls, needs, isProduction: true }),
    (error) => hasCode(error, 'CONFIG_INVALID') && /MILLRACE_BUS/.test(error.message),
  );
  const configured = { ...urls, bus: 'sqlite:/data/bus.db' };
  const roles = resolveRoles({ urls: configured, needs, isProduction: true });
  assert.equal(roles.find(({ role }) => role === 'bus')?.warning, undefined);
});

test('an optional role without an engine is off, and the report says so', () => {
  const roles = resolveRoles({ urls: { store: 'kurrentdb://h' }, needs: needAll('optional') });
  const report = roleReport(roles);
  assert.deepEqual(
    report.filter(({ engine }) => engine !== undefined).map(({ role }) => role),
    ['store'],
  );
});

test('a URL whose engine lacks the role is an error that names engines that have it', () => {
  for (const [urls, pattern] of [
    [
      { outbox: 'redis://h' },
      /outbox: Redis has no outbox; use sqlite:.* or postgres:.*MILLRACE_OUTBOX/,
    ],
    [
      { bus: 'postgres://h/db' },
      /bus: PostgreSQL has no bus; use sqlite:.* or redis:.* or nats:.*MILLRACE_BUS/,
    ],
    [{ queue: 'nats://h' }, /queue: NATS has no work queues/],
    [{ store: 'redis://h' }, /store: Redis has no event store/],
  ] as const) {
    assert.throws(
      () => resolveRoles({ urls, needs: {} }),
      (error) => hasCode(error, 'CONFIG_INVALID') && pattern.test(error.message),
    );
  }
});

test('every combination of engines either resolves each required role to an engine that has it, or names the setting', () => {
  const choices = [undefined, ...engineNames];
  let resolved = 0;
  for (const store of choices)
    for (const outbox of choices)
      for (const keys of choices)
        for (const bus of choices)
          for (const tasks of choices) {
            const urls = {
              store: urlOf(store),
              outbox: urlOf(outbox),
              keys: urlOf(keys),
              bus: urlOf(bus),
              tasks: urlOf(tasks),
            };
            try {
              for (const { role, target, warning } of resolveRoles({
                urls,
                needs: needAll('required'),
              })) {
                assert.ok(target !== undefined, `${JSON.stringify(urls)}: ${role}`);
                const own =
                  role === 'leases' && !hasRole(target.engine, role) ? 'subscriptions' : role;
                assert.ok(hasRole(target.engine, own), `${JSON.stringify(urls)}: ${role}`);
                const isLocal = target.connection.endsWith('local.db');
                const isEmbedded = engineTable[store ?? 'sqlite'].isEmbedded;
                assert.equal(warning !== undefined, isLocal && !isEmbedded && role !== 'leases');
              }
              resolved += 1;
            } catch (error) {
              if (!hasCode(error, 'CONFIG_INVALID')) throw error;
              assert.match(error.message, /^(store|outbox|bus|tasks): /);
            }
          }
  assert.ok(resolved > 1_000, `only ${resolved} combinations resolved`);
});

test('a report shows no password', () => {
  const roles = resolveRoles({ urls: { store: 'postgres://app:secret@h/shop' }, needs: {} });
  assert.equal(JSON.stringify(roleReport(roles)).includes('secret'), false);
});
