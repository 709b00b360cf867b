import { join } from 'node:path';
import { test } from 'node:test';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import { createWorkspace, inRounds } from '../store/rig.ts';
import {
  killInlineProjectors,
  killLiveProjectors,
  killRebuilds,
  type ProjectorRig,
} from './kill-projectors.ts';

const onFile = (run: (rig: ProjectorRig) => Promise<void>) => () =>
  inRounds(async (seed) => {
    await using workspace = await createWorkspace();
    const path = join(workspace.folder, 'events.db');
    await using db = await openSqlite(path);
    await run({ engine: 'sqlite', url: `sqlite:${path}`, seed, db });
  });

test(
  'projectors on SQLite that are killed apply every event once, in order',
  onFile(killLiveProjectors),
);

test(
  'a rebuild on SQLite that is killed resumes, and queries succeed throughout',
  onFile(killRebuilds),
);

test(
  'processes killed while appending to SQLite leave no event without its document',
  onFile(killInlineProjectors),
);
