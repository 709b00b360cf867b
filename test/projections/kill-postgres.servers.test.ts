import { test } from 'node:test';
import { openPostgres } from '../../src/engines/postgres/index.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { inRounds } from '../store/rig.ts';
import {
  killInlineProjectors,
  killLiveProjectors,
  killRebuilds,
  type ProjectorRig,
} from './kill-projectors.ts';

const onDatabase = (run: (rig: ProjectorRig) => Promise<void>) => () =>
  inRounds(async (seed) => {
    const { url } = await sharedPostgres();
    await using db = await openPostgres(url);
    await run({ engine: 'postgres', url, seed, db });
  });

test(
  'projectors on PostgreSQL that are killed apply every event once, in order',
  onDatabase(killLiveProjectors),
);

test(
  'a rebuild on PostgreSQL that is killed resumes, and queries succeed throughout',
  onDatabase(killRebuilds),
);

test(
  'processes killed while appending to PostgreSQL leave no event without its document',
  onDatabase(killInlineProjectors),
);
