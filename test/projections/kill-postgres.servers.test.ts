import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { postgresEventStore } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { connect } from '../store/connect.ts';
import { inRounds } from '../store/rig.ts';
import {
  killInlineProjectors,
  killLiveProjectors,
  killRebuilds,
  type ProjectorRig,
} from './kill-projectors.ts';

/** Each run has its own database, so it contains the documents of this run only. */
const onDatabase = (run: (rig: ProjectorRig) => Promise<void>) => () =>
  inRounds(async (seed) => {
    const { url: server } = await sharedPostgres();
    const name = `projectors_${randomUUID().replaceAll('-', '')}`;
    {
      await using admin = await connect(server);
      await admin.query(`create database ${name}`);
    }
    const url = new URL(server);
    url.pathname = `/${name}`;
    await using store = await postgresEventStore(url.href);
    await run({ engine: 'postgres', url: url.href, seed, store });
  });

test(
  'projectors on PostgreSQL that are killed apply every event once, in order',
  onDatabase(killLiveProjectors),
);

test(
  'a rebuild on PostgreSQL that is killed resumes, and queries are answered throughout',
  onDatabase(killRebuilds),
);

test(
  'processes killed while appending to PostgreSQL leave no event without its document',
  onDatabase(killInlineProjectors),
);
