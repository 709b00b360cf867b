// The whole flow: a command produces a read model and a message, and invalid configurations
// are rejected before anything is opened.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineAggregate } from '../aggregates/index.ts';
import { defineCommand, defineEvent } from '../contracts/index.ts';
import { hasCode } from '../foundation/error.ts';
import { projection, readModel } from '../projections/index.ts';
import { reactor } from '../reactors/index.ts';
import { createPlatform, type PlatformConfig } from './create-platform.ts';
import type { PlatformRole } from './config/platform-role.ts';
import { resolveRoles, type EngineUrls } from './engines/resolve-roles.ts';
import { defineModule } from './modules/platform-module.ts';

const opened = defineEvent('account.opened.v1', z.object({ owner: z.string() }));
const open = defineCommand('account.open', z.object({ owner: z.string().min(1) }));
const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [opened],
  commands: [open],
  initial: { owner: '' },
  evolve: { 'account.opened.v1': (_state, { owner }) => ({ owner }) },
  decide: { 'account.open': ({ owner }) => opened({ owner }) },
});
const greeted = defineEvent('letter.sent.v1', z.object({ to: z.string() }));
const greet = defineCommand('letter.send', z.object({ to: z.string() }));
const letter = defineAggregate({
  bc: 'banking',
  name: 'letter',
  version: 1,
  events: [greeted],
  commands: [greet],
  initial: {},
  evolve: { 'letter.sent.v1': () => ({}) },
  decide: { 'letter.send': ({ to }) => greeted({ to }) },
});
const accounts = projection({
  name: 'sub:banking:accounts:v1',
  readModel: readModel<{ readonly owner: string }>({
    bc: 'banking',
    aggregate: 'account',
    version: 1,
  }),
  on: {
    'account.opened.v1': (
      _before,
      { payload }: { readonly payload: { readonly owner: string } },
    ) => ({
      owner: payload.owner,
    }),
  },
});
const greetings = reactor({
  name: 'sub:banking:greetings:v1',
  events: [opened],
  from: 'start',
  onRejected: 'ignore',
  on: {
    'account.opened.v1': ({ aggregate, payload }) => ({
      id: aggregate.id,
      command: greet({ to: payload.owner }),
    }),
  },
});

function banking(onSent: (payload: unknown) => void): PlatformConfig {
  return {
    engines: { store: 'memory:' },
    modules: [
      defineModule({
        name: 'banking',
        aggregates: [account, letter],
        projections: [accounts],
        reactors: [greetings],
        outbox: [
          {
            name: 'sub:banking:outbox:v1',
            filter: { types: ['letter.sent.v1'] },
            mapper: {
              map: ({ type, payload }) => ({
                integrationType: 'post:letters',
                eventType: type,
                payload: payload as { readonly to: string },
              }),
            },
          },
        ],
        destinations: { post: async ({ payload }) => onSent(payload) },
      }),
    ],
  };
}

test('a command becomes a document, a follow-up and a message that is sent', async () => {
  const sent = Promise.withResolvers<unknown>();
  await using platform = await createPlatform(banking(sent.resolve));
  await platform.start();
  const command = { type: 'account.open', payload: { owner: 'Ada' } };
  const { position, events } = await platform.handle({ tenant: 'core', id: 'a-1', command });
  assert.equal(events[0]?.type, 'account.opened.v1');
  assert.ok(position);
  await platform.waitFor(accounts, position);
  const documents = platform.documents({ bc: 'banking', aggregate: 'account' });
  assert.deepEqual((await documents.get('core', 'a-1'))?.document, { owner: 'Ada' });
  assert.deepEqual(await sent.promise, { to: 'Ada' });
});

test('the response of a receiver becomes a command of the same platform', async () => {
  const base = banking(() => undefined);
  const responded = Promise.withResolvers<unknown>();
  const asking = defineModule({
    name: 'asking',
    outbox: [
      {
        name: 'sub:banking:questions:v1',
        filter: { types: ['account.opened.v1'] },
        mapper: {
          map: ({ type, aggregate }) => ({
            integrationType: 'question:name',
            eventType: type,
            payload: { id: aggregate.id },
          }),
        },
      },
    ],
    destinations: ({ send }) => ({
      async question({ payload, tenantId = '' }) {
        const id = `about-${String(payload['id'])}`;
        const command = { type: 'letter.send', payload: { to: 'Eve' } };
        responded.resolve(await send({ tenant: tenantId, id, command }));
      },
    }),
  });
  await using platform = await createPlatform({
    ...base,
    modules: [...(base.modules ?? []), asking],
  });
  await platform.start();
  const command = { type: 'account.open', payload: { owner: 'Ada' } };
  await platform.handle({ tenant: 'core', id: 'a-1', command });
  await responded.promise;
  const letters = await platform.engines.store
    .readStream('banking.letter.v1-core-about-a-1')
    .toArray();
  assert.deepEqual(
    letters.map(({ payload }) => payload),
    [{ to: 'Eve' }],
  );
});

test('a process without the role subscriptions handles commands only', async () => {
  await using platform = await createPlatform({
    ...banking(() => assert.fail('nothing is sent')),
    roles: ['api'],
  });
  await platform.start();
  const command = { type: 'account.open', payload: { owner: 'Ada' } };
  await platform.handle({ tenant: 'core', id: 'a-1', command });
  assert.deepEqual(await platform.subscriptions.list(), []);
});

test('a platform starts, stops and starts again', async () => {
  const sent: unknown[] = [];
  await using platform = await createPlatform(banking((payload) => sent.push(payload)));
  await platform.start();
  await platform.stop();
  assert.equal(platform.state, 'stopped');
  await platform.start();
  const command = { type: 'account.open', payload: { owner: 'Bob' } };
  const { position } = await platform.handle({ tenant: 'core', id: 'b-1', command });
  assert.ok(position);
  await platform.waitFor(accounts, position);
});

test('an unknown command and an invalid payload are typed errors', async () => {
  await using platform = await createPlatform(banking(() => assert.fail('nothing is sent')));
  const ask = (type: string, payload: unknown) =>
    platform.handle({ tenant: 'core', id: 'a-1', command: { type, payload } });
  await assert.rejects(ask('planet.destroy', {}), (error) => hasCode(error, 'COMMAND_UNKNOWN'));
  await assert.rejects(ask('account.close', {}), (error) => hasCode(error, 'COMMAND_UNKNOWN'));
  await assert.rejects(ask('account.open', { owner: '' }), (error) =>
    hasCode(error, 'PAYLOAD_INVALID'),
  );
  assert.throws(
    () => platform.documents({ bc: 'banking', aggregate: 'planet' }),
    (error) => hasCode(error, 'READ_MODEL_UNKNOWN'),
  );
});

test('an id that is invalid in its read model is rejected before the command runs', async () => {
  await using platform = await createPlatform(banking(() => undefined));
  const ask = (id: string, type: string, payload: unknown) =>
    platform.handle({ tenant: 'core', id, command: { type, payload } });
  await assert.rejects(ask('4915112345678', 'account.open', { owner: 'Ada' }), (error) =>
    hasCode(error, 'KEY_HOLDS_PERSONAL_DATA'),
  );
  // No read model uses this id as a key.
  await ask('4915112345678', 'letter.send', { to: 'Ada' });
});

for (const [what, config] of [
  ['a role that does not exist', { roles: ['cook' as PlatformRole] }],
  ['no role at all', { roles: [] }],
  ['two modules of one name', { modules: [{ name: 'a' }, { name: 'a' }] }],
  [
    'two aggregates of one name',
    {
      modules: [
        { name: 'a', aggregates: [account] },
        { name: 'b', aggregates: [account] },
      ],
    },
  ],
  [
    'an open command that no aggregate of the module has',
    { modules: [{ name: 'a', aggregates: [account], commands: { 'account.opn': 'append' } }] },
  ],
  [
    'two subscriptions of one name',
    {
      modules: [
        { name: 'a', projections: [accounts] },
        { name: 'b', projections: [accounts] },
      ],
    },
  ],
  [
    'two destinations of one name',
    {
      modules: [
        { name: 'a', destinations: { post: async () => undefined } },
        { name: 'b', destinations: () => ({ post: async () => undefined }) },
      ],
    },
  ],
] satisfies [string, PlatformConfig][]) {
  test(`${what} is rejected before anything is opened`, async () => {
    await assert.rejects(
      createPlatform({ engines: { store: 'postgres://unknown.invalid/none' }, ...config }),
      (error) => hasCode(error, 'CONFIG_INVALID'),
    );
  });
}

test('defaults follow from the store, unless the store cannot store checkpoints', () => {
  const needs = { outbox: 'required', subscriptions: 'required', keys: 'unused' } as const;
  const urlsOf = (urls: EngineUrls) => {
    const roles = resolveRoles({ urls, needs, isProduction: true });
    const urlOf = (name: string) => roles.find(({ role }) => role === name)?.target?.connection;
    return {
      store: urlOf('store'),
      readModels: urlOf('readModels'),
      outbox: urlOf('outbox'),
      subscriptions: urlOf('subscriptions'),
    };
  };
  const file = 'sqlite:/a.db';
  const inFile = { store: file, readModels: file, outbox: file, subscriptions: file };
  assert.deepEqual(urlsOf({ store: file }), inFile);
  const apart = { store: 'kurrentdb://localhost:2113', outbox: 'postgres://localhost/x' };
  const { outbox } = apart;
  assert.deepEqual(urlsOf(apart), { ...apart, readModels: outbox, subscriptions: outbox });
  assert.throws(
    () => urlsOf({ store: 'kurrentdb://localhost:2113' }),
    (error) => hasCode(error, 'CONFIG_INVALID') && /set MILLRACE_OUTBOX/.test(error.message),
  );
});

test('a reactor may depend on the current state of an aggregate', async () => {
  const asking = defineModule({
    name: 'asking',
    aggregates: [account, letter],
    reactors: ({ load }) => [
      reactor({
        name: 'sub:banking:asking:v1',
        events: [opened],
        from: 'start',
        onRejected: 'dead-letter',
        on: {
          'account.opened.v1': async ({ aggregate: { id }, tenant }) => {
            const { state, revision } = await load(account, { tenant, id });
            return { id, command: greet({ to: `${state.owner} at ${revision}` }) };
          },
        },
      }),
    ],
  });
  await using platform = await createPlatform({ engines: { store: 'memory:' }, modules: [asking] });
  await platform.handle({ tenant: 'core', id: 'a', command: open({ owner: 'Zoë' }) });
  await platform.start();
  const sent = platform.engines.store.subscribe({ filter: { types: [greeted.type] } });
  for await (const item of sent) {
    if (item.kind !== 'events') continue;
    assert.deepEqual(item.events[0]?.payload, { to: 'Zoë at 0' });
    break;
  }
  const stranger = { ...account, name: 'letter' };
  await assert.rejects(platform.load(stranger, { tenant: 'core', id: 'a' }), (error) =>
    hasCode(error, 'AGGREGATE_INVALID'),
  );
});
