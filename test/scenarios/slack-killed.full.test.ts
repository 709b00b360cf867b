import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { momentsEmbedded, slackKilledAt } from './slack-killed.ts';

test('embedded engines: a process that is killed at a step posts each Slack request exactly once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-slack-'));
  try {
    await slackKilledAt(momentsEmbedded, { store: `sqlite:${folder}/events.db` });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
