import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { postgresEventStore } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from '../store/connect.ts';
import { inRounds } from '../store/rig.ts';
import { killSagas } from './kill-sagas.ts';

test('sagas on PostgreSQL whose workers are killed all end, each effect once and compensated in reverse', () =>
  inRounds(async (seed) => {
    const { url: server } = await sharedPostgres();
    const name = `sagas_${randomUUID().replaceAll('-', '')}`;
    {
      await using admin = await connect(server);
      await admin.query(`create database ${name}`);
    }
    const url = new URL(server);
    url.pathname = `/${name}`;
    await using store = await postgresEventStore(url.href);
    await killSagas({ engine: 'postgres', url: url.href, seed }, store);
  }));
