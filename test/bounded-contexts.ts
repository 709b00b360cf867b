// Two bounded contexts with an aggregate `account`, and two versions of one, for the tests of names.

import { z } from 'zod';
import { defineAggregate } from '../src/aggregates/index.ts';
import { createEnvelope, defineCommand, defineEvent } from '../src/contracts/index.ts';
import { defineModule, type Platform, type PlatformModule } from '../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../src/projections/index.ts';
import { reactor, saga } from '../src/reactors/index.ts';
import { until } from '../src/testing/support/server/api-rig.ts';

const opened = defineEvent('account.opened.v1', z.object({ owner: z.string() }));
const openedV2 = defineEvent('account.opened.v2', z.object({ owners: z.array(z.string()) }));
const sent = defineEvent('letter.sent.v1', z.object({ to: z.string() }));
export const open = defineCommand('account.open', z.object({ owner: z.string() }));
const openV2 = defineCommand('account.open', z.object({ owners: z.array(z.string()) }));
const send = defineCommand('letter.send', z.object({ to: z.string() }));

export const accountOf = (bc: string) =>
  defineAggregate({
    bc,
    name: 'account',
    version: 1,
    events: [opened],
    commands: [open],
    initial: { owner: '' },
    evolve: { 'account.opened.v1': (_state, { owner }) => ({ owner }) },
    decide: { 'account.open': ({ owner }, state) => (state.owner === '' ? opened({ owner }) : []) },
  });

export const accountV2 = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 2,
  events: [openedV2],
  commands: [openV2],
  initial: { owners: [] as readonly string[] },
  evolve: { 'account.opened.v2': (_state, { owners }) => ({ owners }) },
  decide: {
    'account.open': ({ owners }, state) => (state.owners.length === 0 ? openedV2({ owners }) : []),
  },
});

const letterOf = (bc: string) =>
  defineAggregate({
    bc,
    name: 'letter',
    version: 1,
    events: [sent],
    commands: [send],
    initial: {},
    evolve: { 'letter.sent.v1': () => ({}) },
    decide: { 'letter.send': ({ to }) => sent({ to }) },
  });

export const accountsOf = (bc: string, service = bc) =>
  projection({
    name: `sub:${service}:accounts:v1`,
    readModel: readModel<{ readonly owner: string }>({ bc, aggregate: 'account', version: 1 }),
    on: {
      'account.opened.v1': (_before, { payload }: ProjectedEvent<{ readonly owner: string }>) => ({
        owner: payload.owner,
      }),
    },
  });

export const accountsV2 = projection({
  name: 'sub:banking:accounts:v2',
  readModel: readModel<{ readonly owners: readonly string[] }>({
    bc: 'banking',
    aggregate: 'account',
    version: 2,
  }),
  on: {
    'account.opened.v2': (
      _before,
      { payload }: ProjectedEvent<{ readonly owners: readonly string[] }>,
    ) => ({ owners: payload.owners }),
  },
});

/** Copies the accounts of version 1 into streams of version 2. */
export const copyToV2 = reactor({
  name: 'sub:banking:copy-accounts:v2',
  events: [opened],
  from: 'start',
  onRejected: 'dead-letter',
  on: {
    'account.opened.v1': ({ payload, aggregate }) => ({
      id: aggregate.id,
      aggregate: 'banking.account.v2',
      command: openV2({ owners: [payload.owner] }),
    }),
  },
});

/** A whole bounded context: aggregate, read model, reactor, saga and outbox, all on `account.opened.v1`. */
export function contextOf(bc: string, onSent: (payload: unknown) => void = () => undefined) {
  const letter = letterOf(bc);
  return defineModule({
    name: bc,
    aggregates: [accountOf(bc), letter],
    commands: { 'account.open': 'append' },
    projections: [accountsOf(bc)],
    reactors: [
      reactor({
        name: `sub:${bc}:greetings:v1`,
        events: [opened],
        from: 'start',
        onRejected: 'dead-letter',
        on: {
          'account.opened.v1': ({ payload, aggregate }) => ({
            id: aggregate.id,
            aggregate: letter.category,
            command: send({ to: payload.owner }),
          }),
        },
      }),
    ],
    sagas: [
      saga({
        bc,
        name: 'welcome',
        version: 1,
        from: 'start',
        events: [opened],
        startOn: ['account.opened.v1'],
        correlateBy: ({ aggregate }) => aggregate.id,
        initial: {},
        on: {
          'account.opened.v1': ({ payload, aggregate }) => [
            {
              run: 'greet',
              id: `saga-${aggregate.id}`,
              aggregate: letter.category,
              command: send({ to: payload.owner }),
            },
          ],
        },
        steps: { greet: {} },
      }),
    ],
    outbox: [
      {
        name: `sub:${bc}:outbox:v1`,
        filter: { types: ['account.opened.v1'] },
        mapper: {
          map: ({ type, payload }) => ({
            integrationType: `${bc}-post:x`,
            eventType: type,
            payload: payload as { readonly owner: string },
          }),
        },
      },
    ],
    destinations: { [`${bc}-post`]: async ({ payload }) => onSent(payload) },
  }) satisfies PlatformModule;
}

/** Appends as another service does: the platform has no aggregate for the stream. */
export async function appendOpened(
  platform: Platform,
  stream: string,
  { tenant = 'core', bc = 'crm', id = 'a-9' } = {},
): Promise<void> {
  const aggregate = { bc, type: 'account', id };
  const event = createEnvelope(opened({ owner: 'Eve' }), { tenant, aggregate });
  await platform.engines.store.append(stream, [event]);
}

/** Waits until all subscriptions have passed the last event, and no new event was caused. */
export async function settled({ engines, subscriptions }: Platform): Promise<void> {
  await until(async () => {
    const head = await engines.store.head();
    for (const { subscription, paused } of await subscriptions.list()) {
      if (!paused && (await subscriptions.lag(subscription)).behind > 0) return false;
    }
    return (await engines.store.head()) === head;
  });
}

export async function streamsOf({ engines }: Platform, prefix: string): Promise<string[]> {
  const events = engines.store.readAll({ filter: { streamPrefixes: [prefix] } });
  return [...new Set((await events.toArray()).map(({ stream }) => stream))].toSorted();
}
