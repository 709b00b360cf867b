import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { postgresEventStore } from '../../src/adapters/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from '../store/connect.ts';
import { inRounds } from '../store/rig.ts';
import type { Effect } from './effects.ts';
import { checkRun, killWorkers, type Rigged } from './kill-workers.ts';
import { planOf } from './plan.ts';
import { takeOver } from './take-over.ts';

interface Opened extends Rigged, AsyncDisposable {
  readonly url: string;
}

/** A database of its own: effects and events of one run only. */
async function openRig(): Promise<Opened> {
  const { url: server } = await sharedPostgres();
  const name = `workers_${randomUUID().replaceAll('-', '')}`;
  {
    await using admin = await connect(server);
    await admin.query(`create database ${name}`);
  }
  const url = new URL(server);
  url.pathname = `/${name}`;
  const client = await connect(url.href);
  await client.query(
    'create table effects (id bigserial primary key, event_id text, stream text, revision integer, worker text)',
  );
  const store = await postgresEventStore(url.href);
  return {
    url: url.href,
    store,
    async effects() {
      const { rows } = await client.query<Effect>(
        'select event_id as "eventId", stream, revision, worker from effects order by id',
      );
      return rows;
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await client.end();
    },
  };
}

test('workers that are killed over one database lose nothing, repeat nothing, and keep the order', () =>
  inRounds(async (seed) => {
    await using rig = await openRig();
    const plan = planOf({ engine: 'postgres', url: rig.url, seed });
    const faults = await killWorkers(plan, rig);
    assert.ok(faults >= 3, `only ${faults} faults`);
    await checkRun(plan, rig);
  }));

test('a worker that stands by over one database takes over within the lease time', async () => {
  await using rig = await openRig();
  await takeOver(planOf({ engine: 'postgres', url: rig.url, seed: 1 }), rig);
});
