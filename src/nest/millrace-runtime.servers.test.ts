// Messages and checkpoint on PostgreSQL: one commit if both are in one database, however they were opened.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Test } from '@nestjs/testing';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { openPostgres } from '../engines/postgres/index.ts';
import { MillraceError } from '../foundation/error.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { EventStore } from '../store/event-store.ts';
import type { SubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import type { SubscriptionStorage } from '../subscriptions/subscription-storage.ts';
import { eventually } from '../testing/assertions.ts';
import { idsOf, newEvents } from '../testing/conformance/store/fixture.ts';
import { sharedPostgres } from '../testing/servers/shared-servers.ts';
import {
  EVENT_STORE,
  MillraceModule,
  MillraceRuntime,
  OUTBOX_LEDGER,
  type MillraceModuleOptions,
} from './index.ts';
import { openTypeorm, TypeormOutboxRepository } from './typeorm/index.ts';

type Engines = Pick<MillraceModuleOptions, 'outbox' | 'store'>;

async function typeorm(url: string, opened: AsyncDisposableStack): Promise<DataSource> {
  const { hostname, port, username, password, pathname } = new URL(url);
  // Not by URL: the database is recognised by its host, its port and its name.
  const dataSource = new DataSource({
    type: 'postgres',
    host: hostname,
    port: Number(port),
    username,
    password,
    database: pathname.slice(1),
  });
  opened.defer(() => dataSource.destroy());
  return dataSource.initialize();
}

const sharing: Readonly<
  Record<string, (url: string, opened: AsyncDisposableStack) => Promise<Engines>>
> = {
  'a handle': async (url) => ({ store: await openPostgres(url) }),
  'two URLs of one database': async (url) => ({
    store: url,
    outbox: { ledger: `${url}?application_name=outbox` },
  }),
  'a URL, and a ledger on TypeORM in the same database': async (url, opened) => ({
    store: url,
    outbox: { ledger: new TypeormOutboxRepository(await typeorm(url, opened)) },
  }),
  'a store without checkpoints, and a ledger on TypeORM': async (url, opened) => {
    const { store } = opened.use(await openPostgres(url));
    return {
      store: { store },
      outbox: { ledger: new TypeormOutboxRepository(await typeorm(url, opened)) },
    };
  },
  'a handle and a ledger on one pool of TypeORM': async (url, opened) => {
    const dataSource = await typeorm(url, opened);
    const ledger = new TypeormOutboxRepository(dataSource);
    return { store: await openTypeorm(dataSource), outbox: { ledger } };
  },
};

for (const [title, open] of Object.entries(sharing)) {
  test(`${title}: a connection that is lost before the commit leaves neither messages nor checkpoint`, async () => {
    await using opened = new AsyncDisposableStack();
    const { url } = await sharedPostgres();
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    opened.defer(() => admin.end());
    const { store, ledger, runner } = await start(await open(url, opened), opened);
    const events = newEvents(20);

    // The projector stops between its messages and the end of its transaction.
    await admin.query(`
      create function wait_for_test() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock(22); return null; end';
      create trigger wait_for_test before insert on millrace.subscription_marks
        for each statement execute function wait_for_test();
      select pg_advisory_lock(22)`);
    await store.append(stream, events);
    let pids: readonly number[] = [];
    await eventually('the transaction with the messages waits before its commit', async () => {
      const { rows } = await admin.query<{ pid: number }>(
        `select pid from pg_locks waiting join pg_locks written using (pid)
         where waiting.locktype = 'advisory' and waiting.objid = 22 and not waiting.granted
         and written.relation = 'core_outbox.messages'::regclass and written.mode = 'RowExclusiveLock'`,
      );
      pids = rows.map(({ pid }) => pid);
      return pids.length > 0;
    });
    assert.deepEqual(await ledger.list({}), []);
    for (const pid of pids) await admin.query('select pg_terminate_backend($1)', [pid]);
    await admin.query('select pg_advisory_unlock(22)');

    await runner.whenCaughtUp();
    assert.deepEqual(sourcesOf(await ledger.list({}, { oldestFirst: true })), idsOf(events));
  });
}

test('a ledger on TypeORM in another database commits alone, and a lost response does not repeat its messages', async () => {
  await using opened = new AsyncDisposableStack();
  const [{ url }, { url: otherUrl }] = [await sharedPostgres(), await sharedPostgres()];
  const outbox = new TypeormOutboxRepository(await typeorm(otherUrl, opened));
  const enqueueMany = outbox.enqueueMany.bind(outbox);
  const lost = Promise.withResolvers<readonly string[]>();
  const recovered = Promise.withResolvers<void>();
  let calls = 0;
  outbox.enqueueMany = async (items) => {
    calls += 1;
    if (calls > 1) await recovered.promise;
    const enqueued = await enqueueMany(items);
    if (calls > 1) return enqueued;
    lost.resolve(sourcesOf(items));
    throw new MillraceError('STORE_UNAVAILABLE', 'the response was lost', { retryable: true });
  };
  const engines = { store: url, outbox: { ledger: outbox } };
  const { store, ledger, runner, checkpoints } = await start(engines, opened);
  assert.notEqual(ledger.database, checkpoints?.database);
  const events = newEvents(20);
  await store.append(stream, events);
  const stored = await lost.promise;
  assert.ok(stored.length > 0);
  assert.deepEqual(sourcesOf(await ledger.list({}, { oldestFirst: true })), stored);
  recovered.resolve();
  await runner.whenCaughtUp();
  assert.deepEqual(sourcesOf(await ledger.list({}, { oldestFirst: true })), idsOf(events));
});

const stream = 'banking.account.v1-core-a1';

interface Started {
  readonly store: EventStore;
  readonly ledger: OutboxLedger;
  readonly checkpoints: SubscriptionStorage | undefined;
  readonly runner: SubscriptionRunner;
}

/** Starts an application with one projector. */
async function start(engines: Engines, opened: AsyncDisposableStack): Promise<Started> {
  const name = 'sub:shop:outbox:v1';
  const message = { integrationType: 'webhook:x', eventType: 'account.opened.v1', payload: {} };
  const retry = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1_000 };
  const projectors = [{ name, retry, mapper: { map: () => message } }];
  const options = { ...engines, observer: {}, outbox: { ...engines.outbox, projectors } };
  const app = await Test.createTestingModule({
    imports: [MillraceModule.forRoot(options)],
  }).compile();
  opened.defer(() => app.close());
  await app.init();
  const { runners, subscriptions: checkpoints } = app.get(MillraceRuntime);
  const runner = runners.get(name);
  assert.ok(runner !== undefined);
  return { store: app.get(EVENT_STORE), ledger: app.get(OUTBOX_LEDGER), checkpoints, runner };
}

function sourcesOf(messages: readonly { readonly sourceEventId: string }[]): readonly string[] {
  return messages.map(({ sourceEventId }) => sourceEventId);
}
