import { test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { inRounds } from '../store/rig.ts';
import { killSagas } from './kill-sagas.ts';

test('sagas on PostgreSQL whose workers are killed all end, each effect once and compensated in reverse', () =>
  inRounds(async (seed) => {
    const { url } = await sharedPostgres();
    await using db = await openPostgres(url);
    await killSagas({ engine: 'postgres', url, seed }, db);
  }));
