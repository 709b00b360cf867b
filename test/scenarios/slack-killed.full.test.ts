import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { slackKilledAtEveryStep } from './slack-killed.ts';

test('embedded: killed at every step, each request is posted exactly once', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-slack-'));
  try {
    await slackKilledAtEveryStep({ store: `sqlite:${folder}/events.db` }, t);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
