// An API server with a small bank for tests, whose handler, destination and saga can fail.

import { z } from 'zod';
import { defineAggregate, CommandRejected } from '../../../aggregates/index.ts';
import { defineCommand, defineEvent } from '../../../contracts/index.ts';
import {
  createPlatform,
  defineModule,
  type EngineUrls,
  type Platform,
  type PlatformModule,
} from '../../../platform/index.ts';
import type { TokenScope } from '../../../platform/tokens/scopes.ts';
import { projection, readModel, type ProjectedEvent } from '../../../projections/index.ts';
import { saga } from '../../../reactors/index.ts';
import type { EventStoreOptions } from '../../../store/index.ts';
import { subscription, Terminal } from '../../../subscriptions/index.ts';
import { bankWeb } from './bank-web-rig.ts';
import { taskType } from '../../../tasks/index.ts';
import { startApi, type ApiOptions, type ApiServer } from '../../../server/api/start-api.ts';

const money = z.object({ amount: z.number().positive() });
const deposited = defineEvent('account.deposited.v1', money);
const deposit = defineCommand('account.deposit', money);
const review = defineCommand('account.review', z.object({}));
const account = defineAggregate({
  bc: 'banking',
  name: 'account',
  version: 1,
  events: [deposited],
  commands: [deposit, review],
  initial: 0,
  evolve: { 'account.deposited.v1': (sum, { amount }) => sum + amount },
  decide: {
    'account.deposit': ({ amount }, sum) => {
      if (sum + amount > 1_000) throw new CommandRejected('too-rich', 'that is too much');
      return deposited({ amount });
    },
    'account.review': () => [],
  },
});
const accounts = projection({
  name: 'sub:banking:accounts:v1',
  readModel: readModel<{ readonly balance: number }>({
    bc: 'banking',
    aggregate: 'account',
    version: 1,
    ranges: { balance: ({ balance }) => balance },
  }),
  on: {
    'account.deposited.v1': (before, { payload }: ProjectedEvent<{ readonly amount: number }>) => ({
      balance: (before?.balance ?? 0) + payload.amount,
    }),
  },
});

/** Amounts that fail while `isFixed` is false. */
const failingAmounts = { handler: 13, destination: 14, saga: 15 } as const;

const failOn = (faults: Faults, amount: unknown, failingAmount: number): void => {
  if (amount === failingAmount && !faults.isFixed) throw new Terminal('out of order');
};

interface Faults {
  isFixed: boolean;
}

function bank(faults: Faults): PlatformModule {
  const amountOf = ({ payload }: { readonly payload: unknown }) =>
    (payload as { amount: number }).amount;
  return defineModule({
    name: 'bank',
    aggregates: [account],
    commands: { 'account.deposit': 'append', 'account.review': 'append' },
    projections: [accounts],
    subscriptions: [
      subscription({
        name: 'sub:banking:alarm:v1',
        filter: { types: ['account.deposited.v1'] },
        handler: (event) => failOn(faults, amountOf(event), failingAmounts.handler),
      }),
    ],
    sagas: [
      saga({
        bc: 'banking',
        name: 'review',
        version: 1,
        from: 'start',
        events: [deposited],
        startOn: ['account.deposited.v1'],
        correlateBy: ({ aggregate }) => aggregate.id,
        initial: { amount: 0 },
        on: {
          'account.deposited.v1': ({ payload, aggregate }) => [
            { data: payload },
            { run: 'review', id: aggregate.id, command: review({}) },
          ],
        },
        steps: {
          review: {
            onDone: ({ data }) => {
              failOn(faults, data.amount, failingAmounts.saga);
              return [];
            },
          },
        },
        retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1 },
      }),
    ],
    outbox: [
      {
        name: 'sub:banking:outbox:v1',
        filter: { types: ['account.deposited.v1'] },
        mapper: {
          map: (event) => ({
            integrationType: 'partner:x',
            eventType: event.type,
            payload: { amount: amountOf(event) },
          }),
        },
      },
    ],
    web: bankWeb,
    destinations: {
      partner: async ({ payload }) => failOn(faults, payload['amount'], failingAmounts.destination),
    },
  });
}

export interface Api extends AsyncDisposable {
  readonly platform: Platform;
  readonly server: ApiServer;
  readonly faults: Faults;
  token(scope: TokenScope, tenant?: string): Promise<string>;
  ask(path: string, token?: string, init?: RequestInit): Promise<Response>;
  post(
    path: string,
    body: unknown,
    token?: string,
    headers?: Record<string, string>,
  ): Promise<Response>;
  /** Deposits each failing amount, and waits until all failures are recorded. */
  fail(tenant: string, correlationId?: string): Promise<void>;
}

const taskTypes = [
  taskType('email-send', { workers: 2, retries: 0 }),
  taskType('report-gen', { stepTimeoutMs: 300_000 }),
];

let tokens = 0;

export async function openApi(
  options: ApiOptions = {},
  engines: EngineUrls = { store: 'memory:' },
  modules: readonly PlatformModule[] = [],
  storeOptions: EventStoreOptions = {},
): Promise<Api> {
  await using stack = new AsyncDisposableStack();
  const faults = { isFixed: false };
  const platform = stack.use(
    await createPlatform({
      engines,
      modules: [bank(faults), ...modules],
      taskTypes,
      // A test of worker routes waits for the sweeper.
      taskSweepEveryMs: 100,
      ...storeOptions,
    }),
  );
  await platform.start();
  const server = stack.use(await startApi(platform, { port: 0, ...options }));
  const ask: Api['ask'] = (path, token, init = {}) =>
    fetch(server.url + path, {
      ...init,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(init.headers as Record<string, string> | undefined),
      },
    });
  const all = stack.move();
  return {
    platform,
    server,
    faults,
    ask,
    post: (path, body, token, headers = {}) =>
      ask(path, token, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    async token(scope, tenant) {
      const name = `t${(tokens += 1)}`;
      const fields = { name, scopes: [scope], ...(tenant === undefined ? {} : { tenant }) };
      return (await platform.tokens.create(fields)).secret;
    },
    async fail(tenant, correlationId = 'failing') {
      for (const [id, amount] of Object.entries(failingAmounts)) {
        await platform.handle({ tenant, id, command: deposit({ amount }), correlationId });
      }
      const { subscriptions, outbox, sagas } = platform.engines;
      await until(async () => {
        const letters = await subscriptions.deadLetters.list({ tenant, status: 'pending' });
        const messages = (await outbox?.list({ tenantId: tenant, status: 'DEAD' })) ?? [];
        const parked = await sagas.list({ tenant, status: 'parked' });
        return [letters, messages, parked].every((each) => each.length > 0);
      });
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Polls until the condition holds, for at most a minute. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error('the condition did not hold within a minute');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const body = async <T>(response: Response): Promise<T> => (await response.json()) as T;
