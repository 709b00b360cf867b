import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Module, Scope, type Provider, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DataSource } from 'typeorm';
import { openMemory, type MemoryEngine } from '../engines/memory/index.ts';
import { createEnvelope } from '../contracts/envelope.ts';
import type { ErrorCode } from '../foundation/error-codes.ts';
import { hasCode } from '../foundation/error.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { EventStore } from '../store/event-store.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import {
  EVENT_STORE,
  ILOGGER,
  MapToOutbox,
  MillraceHealthIndicator,
  MillraceMetrics,
  MillraceModule,
  MillraceRuntime,
  OnEvent,
  OUTBOX_DISPATCHER,
  OUTBOX_LEDGER,
  OutboxRepository,
  type MillraceModuleOptions,
} from './index.ts';
import { TypeormOutboxRepository } from './typeorm/index.ts';

class Handlers {
  readonly seen: string[] = [];
  readonly whenSeen = Promise.withResolvers<void>();

  onCompleted({ eventId }: RecordedEvent): void {
    this.seen.push(eventId);
    this.whenSeen.resolve();
  }

  toPartner({ type }: RecordedEvent): { readonly payload: object } {
    return { payload: { type } };
  }
}
decorate(Handlers, 'onCompleted', OnEvent('payment.completed.v1'));
decorate(Handlers, 'toPartner', MapToOutbox('payment.*', { integrationType: 'partner' }));

/** Applies `@OnEvent(…)` to a method without decorator syntax. */
function decorate(
  target: Type<object>,
  name: string,
  decorator: (target: object, name: string, descriptor: PropertyDescriptor) => void,
): void {
  const prototype = target.prototype as object;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  assert.ok(descriptor !== undefined);
  decorator(prototype, name, descriptor);
}

const quiet = { observer: {} };

async function started(
  options: MillraceModuleOptions,
  providers: readonly Provider[] = [Handlers],
): Promise<TestingModule> {
  const imports = [
    MillraceModule.forRoot({ service: 'shop', bc: 'paymenthub', ...quiet, ...options }),
  ];
  const app = await Test.createTestingModule({ imports, providers: [...providers] }).compile();
  return app.init();
}

async function pay(store: EventStore, bc = 'paymenthub', version = 1): Promise<string> {
  const aggregate = { bc, type: 'payment', id: 'p1' };
  const event = createEnvelope(
    { type: 'payment.completed.v1', payload: {} },
    { tenant: 'core', aggregate },
  );
  await store.append(`${bc}.payment.v${version}-core-p1`, [event]);
  return event.eventId;
}

async function failsToStart(code: ErrorCode, start: () => Promise<unknown>): Promise<void> {
  await assert.rejects(start, (error) => hasCode(error, code));
}

test('one forRoot runs handlers, mappers and destinations', async () => {
  const delivered = Promise.withResolvers<object>();
  let disposals = 0;
  const send = Object.assign(async (message: object) => delivered.resolve(message), {
    [Symbol.asyncDispose]: async () => void (disposals += 1),
  });
  const destinations = { partner: send, 'partner:slow': { send, timeoutMs: 30_000 } };
  const app = await started({ store: 'memory:', outbox: { destinations } });
  const eventId = await pay(app.get<EventStore>(EVENT_STORE));
  await app.get(Handlers).whenSeen.promise;
  assert.deepEqual(app.get(Handlers).seen, [eventId]);
  const message = (await delivered.promise) as { readonly sourceEventId: string };
  assert.equal(message.sourceEventId, eventId);
  assert.equal(app.get(OutboxRepository), app.get(OUTBOX_LEDGER));
  assert.equal(app.get(OUTBOX_DISPATCHER), app.get(MillraceRuntime).dispatcher);
  assert.equal(typeof app.get<{ warn: unknown }>(ILOGGER).warn, 'function');
  assert.equal((await app.get(MillraceHealthIndicator).check()).status, 'up');
  await app.close();
  await app.close();
  assert.equal(disposals, 1);
});

test('forRootAsync waits for other providers', async () => {
  const ledger = openMemory().outbox;
  const ENGINE = 'ENGINE';
  class StoreModule {}
  Module({
    providers: [{ provide: ENGINE, useFactory: async () => openMemory() }],
    exports: [ENGINE],
  })(StoreModule);
  const millrace = MillraceModule.forRootAsync({
    imports: [StoreModule],
    inject: [ENGINE],
    useFactory: async (db: MemoryEngine) => ({
      service: 'shop',
      bc: 'paymenthub',
      store: db,
      outbox: { ledger },
      ...quiet,
    }),
  });
  const app = await Test.createTestingModule({
    imports: [millrace],
    providers: [Handlers],
  }).compile();
  await app.init();
  await pay(app.get<EventStore>(EVENT_STORE));
  await app.get(MillraceRuntime).runners.get('sub:shop:outbox:v1')?.whenCaughtUp();
  assert.equal((await ledger.counts()).PENDING, 1);
  await app.close();
});

test('the handle of an engine is the store, the checkpoints and the outbox, and closes with the application', async () => {
  const db = openMemory();
  const { store } = db;
  const app = await started({ store: db });
  assert.equal(app.get(EVENT_STORE), store);
  assert.equal(app.get(OUTBOX_LEDGER), db.outbox);
  await pay(store);
  const { runners } = app.get(MillraceRuntime);
  for (const runner of runners.values()) await runner.whenCaughtUp();
  assert.equal((await db.outbox.counts()).PENDING, 1);
  const checkpoints = await db.subscriptions.checkpoints.list();
  assert.deepEqual(checkpoints.map((each) => each.subscription).toSorted(), [
    'sub:shop:handlers:v1',
    'sub:shop:outbox:v1',
  ]);
  await app.close();
  await assert.rejects(store.head(), (error) => hasCode(error, 'STORE_CLOSED'));
});

test('roles of several engines are combined, and stay open unless their object is disposable', async () => {
  await using events = openMemory();
  await using checkpoints = openMemory();
  await using leases = openMemory();
  const acquired: string[] = [];
  const app = await started({
    store: {
      store: events.store,
      subscriptions: checkpoints.subscriptions,
      outbox: checkpoints.outbox,
      leases: {
        ...leases.subscriptions.leases,
        acquire(key, ...more) {
          acquired.push(key.subscription);
          return leases.subscriptions.leases.acquire(key, ...more);
        },
      },
    },
  });
  await pay(events.store);
  const { runners } = app.get(MillraceRuntime);
  for (const runner of runners.values()) await runner.whenCaughtUp();
  await app.close();
  assert.deepEqual(new Set(acquired), new Set(runners.keys()));
  assert.equal((await checkpoints.subscriptions.checkpoints.list()).length, 2);
  assert.equal((await events.subscriptions.checkpoints.list()).length, 0);
  assert.equal((await checkpoints.outbox.counts()).PENDING, 1);
  assert.equal((await events.store.readAll({ limit: 10 }).toArray()).length, 1);
});

test('handlers without checkpoints prevent the start, and the error names the option', async () => {
  await using db = openMemory();
  await assert.rejects(
    started({ store: { store: db.store, outbox: db.outbox } }),
    (error) =>
      hasCode(error, 'CONFIG_INVALID') &&
      /set 'store' to roles, such as .*subscriptions: postgres\.subscriptions/.test(error.message),
  );
  const app = await started({ store: { store: db.store } }, []);
  assert.equal(app.get(OUTBOX_LEDGER), undefined);
  assert.equal((await app.get(MillraceHealthIndicator).check()).status, 'up');
  await app.close();
});

test('with run: false a process appends and enqueues, but starts no handler', async () => {
  const app = await started({
    store: 'memory:',
    run: false,
    outbox: { deliver: async () => undefined },
  });
  await pay(app.get<EventStore>(EVENT_STORE));
  const { runners, dispatcher } = app.get(MillraceRuntime);
  assert.equal(runners.size, 0);
  assert.equal(dispatcher?.state, 'stopped');
  assert.equal((await app.get(MillraceHealthIndicator).check()).status, 'up');
  await app.close();
});

test('a module that is not global provides only to its importers', async () => {
  class Feature {}
  const needs = { provide: Feature, inject: [EVENT_STORE], useFactory: () => new Feature() };
  class FeatureModule {}
  Module({ providers: [needs] })(FeatureModule);
  const compiled = (isGlobal: boolean): Promise<TestingModule> =>
    Test.createTestingModule({
      imports: [MillraceModule.forRoot({ store: 'memory:', isGlobal, ...quiet }), FeatureModule],
    }).compile();
  await assert.rejects(compiled(false), /can't resolve dependencies/i);
  const app = await compiled(true);
  assert.ok(app.get(Feature, { strict: false }) instanceof Feature);
  await app.close();
});

test('an alias of a provider does not handle events a second time', async () => {
  const app = await started({ store: 'memory:' }, [
    Handlers,
    { provide: 'ALIAS', useExisting: Handlers },
  ]);
  const eventId = await pay(app.get<EventStore>(EVENT_STORE));
  const { runners } = app.get(MillraceRuntime);
  for (const runner of runners.values()) await runner.whenCaughtUp();
  assert.deepEqual(app.get(Handlers).seen, [eventId]);
  await app.close();
});

test('a duplicate or request-scoped handler prevents the start and closes the engines', async () => {
  const cases: readonly (readonly [ErrorCode, readonly Provider[], MillraceModuleOptions])[] = [
    ['SUBSCRIPTION_INVALID', [Handlers, { provide: 'OTHER', useClass: Handlers }], {}],
    ['CONFIG_INVALID', [{ provide: Handlers, useClass: Handlers, scope: Scope.REQUEST }], {}],
    ['CONFIG_INVALID', [{ provide: Handlers, useClass: Handlers, scope: Scope.TRANSIENT }], {}],
    ['SUBSCRIPTION_INVALID', [Handlers], { subscriptions: [twin, twin] }],
    ['NAME_INVALID', [Handlers], { service: 'Not A Name' }],
    ['CONFIG_INVALID', [Handlers], { outbox: false }],
  ];
  for (const [code, providers, options] of cases) {
    const db = openMemory();
    const { store } = db;
    await failsToStart(code, () =>
      started({ store: db, outbox: { ledger: openMemory().outbox }, ...options }, providers),
    );
    await assert.rejects(store.head(), (error) => hasCode(error, 'STORE_CLOSED'), code);
  }
});

class OtherContext extends Handlers {
  override onCompleted(event: RecordedEvent): void {
    super.onCompleted(event);
  }

  override toPartner(event: RecordedEvent): { readonly payload: object } {
    return super.toPartner(event);
  }
}
decorate(
  OtherContext,
  'onCompleted',
  OnEvent('payment.completed.v1', { category: 'crm.payment.v1' }),
);
decorate(
  OtherContext,
  'toPartner',
  MapToOutbox('payment.*', { integrationType: 'other', category: 'crm.payment.v1' }),
);

test('handlers and mappers read the category of their bounded context, and another one only by its name', async () => {
  const app = await started({ store: 'memory:' }, [Handlers, OtherContext]);
  const store = app.get<EventStore>(EVENT_STORE);
  await pay(store, 'shop');
  const other = await pay(store, 'crm');
  await pay(store, 'paymenthub', 2);
  const own = await pay(store);
  const { runners, ledger } = app.get(MillraceRuntime);
  for (const runner of runners.values()) await runner.whenCaughtUp();
  assert.deepEqual(app.get(Handlers).seen, [own]);
  assert.deepEqual(app.get(OtherContext).seen, [other]);
  const messages = (await ledger?.list({})) ?? [];
  assert.deepEqual(
    messages
      .map(({ sourceStreamId, integrationType }) => `${sourceStreamId} ${integrationType}`)
      .toSorted(),
    [
      'crm.payment.v1-core-p1 other',
      'paymenthub.payment.v1-core-p1 partner',
      'paymenthub.payment.v2-core-p1 partner',
    ],
  );
  await app.close();
});

test('event types without a bounded context prevent the start, and the error names the option', async () => {
  const types = { name: 'sub:shop:typed:v1', filter: { types: ['payment.completed.v1'] } };
  const typed = { ...types, handler: () => undefined };
  for (const start of [
    () => started({ store: 'memory:', bc: undefined }),
    () => started({ store: 'memory:', bc: undefined, subscriptions: [typed] }, []),
  ]) {
    await assert.rejects(
      start,
      (error) =>
        hasCode(error, 'CONFIG_INVALID') &&
        error.details['field'] === 'bc' &&
        /^(?:Handlers\.onCompleted|sub:shop:typed:v1) names event types/.test(error.message),
    );
  }
});

const twin = { name: 'sub:shop:twin:v1', handler: () => undefined };

test('the variables of the outbox document configure the module, and options win', async () => {
  const claims: number[] = [];
  const polls: number[] = [];
  const ledger = openMemory().outbox;
  const watched: OutboxLedger = {
    ...ledger,
    claimDueBatch(workerId, limit, options) {
      claims.push(limit);
      return ledger.claimDueBatch(workerId, limit, options);
    },
    whenDue(pollMs, signal) {
      polls.push(pollMs);
      return ledger.whenDue(pollMs, signal);
    },
  };
  const dead = Promise.withResolvers<string>();
  const kafka = async ({ integrationType }: { readonly integrationType: string }) =>
    dead.resolve(integrationType);
  const hangs = () => new Promise<never>(() => undefined);
  const env = {
    ESDB_SUBSCRIPTION_PREFIX: 'payment.',
    OUTBOX_CLAIM_BATCH_SIZE: '7',
    OUTBOX_MAX_ATTEMPTS: '1',
    OUTBOX_TICK_INTERVAL_MS: '9',
    OUTBOX_DEADLETTER_TOPIC: 'outbox.dead',
    WEBHOOK_TIMEOUT_MS: '20',
  };
  const seen: string[] = [];
  const mapper = { map: ({ type }: RecordedEvent) => void seen.push(type) };
  const projectors = [{ name: 'sub:shop:prefix:v1', mapper }];
  const destinations = { kafka, webhook: hangs };
  const app = await started(
    { store: openMemory(), outbox: { ledger: watched, projectors, destinations }, env },
    [],
  );
  const store = app.get<EventStore>(EVENT_STORE);
  const aggregate = { bc: 'shop', type: 'order', id: 'o1' };
  const about = { tenant: 'core', aggregate };
  const other = createEnvelope({ type: 'order.opened.v1', payload: {} }, about);
  await store.append('shop.order.v1-core-o1', [other]);
  await pay(store);
  await app.get(MillraceRuntime).runners.get('sub:shop:prefix:v1')?.whenCaughtUp();
  assert.deepEqual(seen, ['payment.completed.v1']);
  const message = { sourceStreamId: 's', eventType: 'order.paid.v1', payload: {} };
  const type = { integrationType: 'webhook:x', maxAttempts: 1 };
  await ledger.enqueue({ ...message, ...type, sourceEventId: 'e1' });
  assert.equal(await dead.promise, 'kafka:outbox.dead');
  const [died] = await ledger.list({ status: 'DEAD' });
  assert.equal(died?.lastError, 'no response within 20 ms');
  assert.ok(claims.every((limit) => limit <= 7) && claims.includes(7), claims.join());
  assert.ok(polls.every((ms) => ms <= 9) && polls.includes(9), polls.join());
  await app.close();

  const second = await started({ store: 'memory:', env, outbox: { destinations } }, []);
  const enqueued = await second
    .get(OutboxRepository)
    .enqueue({ ...message, integrationType: 'other', sourceEventId: 'e2' });
  assert.equal(enqueued.maxAttempts, 1);
  await second.close();
});

test('the store, the ledger and the queue can come from the environment alone', async () => {
  const env = { MILLRACE_STORE: 'memory:', MILLRACE_QUEUE: 'memory:' };
  const sent = Promise.withResolvers<string>();
  const deliver = async ({ sourceEventId }: { readonly sourceEventId: string }) =>
    sent.resolve(sourceEventId);
  const app = await started({ env, outbox: { queue: {}, deliver } });
  const eventId = await pay(app.get<EventStore>(EVENT_STORE));
  assert.equal(await sent.promise, eventId);
  const { dispatcher, worker } = app.get(MillraceRuntime);
  assert.equal(worker?.state, 'started');
  assert.ok(dispatcher !== undefined && !('whenIdle' in dispatcher));
  const health = await app.get(MillraceHealthIndicator).check();
  assert.equal(health.worker?.state, 'started');
  assert.match(await app.get(MillraceMetrics).read(), /^outbox_jobs_total\{.*\} 1$/m);
  await app.close();
  assert.equal(worker.state, 'stopped');
  await failsToStart('CONFIG_INVALID', () =>
    started({ store: 'memory:', outbox: { queue: {} }, env: {} }),
  );
});

test('the checkpoints of a store that has none are in the database of a ledger that has them', async () => {
  await using db = openMemory();
  const checkpoints = openMemory();
  const ledger = Object.assign(openMemory().outbox, {
    subscriptions: async () => checkpoints.subscriptions,
  });
  const app = await started({ store: { store: db.store }, outbox: { ledger } });
  await pay(db.store);
  const { runners } = app.get(MillraceRuntime);
  for (const runner of runners.values()) await runner.whenCaughtUp();
  assert.equal((await ledger.counts()).PENDING, 1);
  assert.equal((await checkpoints.subscriptions.checkpoints.list()).length, 2);
  await app.close();
});

test('rejects invalid options with their error codes', async () => {
  await failsToStart('CONFIG_INVALID', () => started({}));
  await failsToStart('CONFIG_INVALID', () => started({ store: 'no-such-engine:' }));
  await failsToStart('CONFIG_INVALID', () => started({ store: 'redis://127.0.0.1:1' }));
  await failsToStart('CONFIG_INVALID', () => started({ outbox: { ledger: 'nats://127.0.0.1:1' } }));
  // An event store alone, from a factory without types.
  const untyped = openMemory().store as unknown as MemoryEngine;
  await failsToStart('CONFIG_INVALID', () => started({ store: untyped }));
  await failsToStart('STORE_UNAVAILABLE', () => started({ store: 'postgres://127.0.0.1:1/none' }));
  const dataSource = new DataSource({ type: 'postgres', url: 'postgres://127.0.0.1:1/none' });
  const ledger = new TypeormOutboxRepository(dataSource);
  await failsToStart('STORE_CLOSED', () => started({ outbox: { ledger } }));
  await failsToStart('OUTBOX_INVALID', () =>
    started({
      store: 'memory:',
      outbox: { deliver: async () => undefined, dispatcher: { concurrency: 0 } },
    }),
  );
});

test('health reports the delay of the oldest message, whatever the number of later ones', async () => {
  const ledger = openMemory().outbox;
  const item = (eventId: number, dueAt?: Date) => ({
    sourceStreamId: 'banking.account.v1-core-a1',
    sourceEventId: `e${eventId}`,
    integrationType: 'webhook:x',
    eventType: 'banking.account.opened.v1',
    payload: {},
    dueAt,
  });
  await ledger.enqueue(item(0, new Date('2020-01-01')));
  await ledger.enqueueMany(Array.from({ length: 100 }, (_, at) => item(at + 1)));
  const app = await started({ store: 'memory:', run: false, outbox: { ledger } });
  const { problems } = await app.get(MillraceHealthIndicator).check();
  assert.match(problems.join('\n'), /outbox: delay in seconds/);
  await app.close();
});

test('health is down when the store is closed, and the check does not hang', async () => {
  const db = openMemory();
  const ledger: OutboxLedger = {
    ...openMemory().outbox,
    counts: () => new Promise(() => undefined),
  };
  const app = await started({ store: db, outbox: { ledger }, health: { timeoutMs: 20 } });
  await db.store[Symbol.asyncDispose]();
  const { millrace } = await app.get(MillraceHealthIndicator).isHealthy('millrace');
  assert.equal(millrace.status, 'down');
  assert.equal(millrace.store?.reachable, false);
  assert.match(
    millrace.problems.join('\n'),
    /the outbox does not respond: no response within 20 ms/,
  );
  await app.close();
});
