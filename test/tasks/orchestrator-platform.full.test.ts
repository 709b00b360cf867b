import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../src/testing/assertions.ts';
import { createPlatform } from '../../src/platform/index.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { taskType } from '../../src/tasks/index.ts';

test('a platform with the role sweepers creates the orchestrator groups of its types', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-orchestrated-'));
  try {
    const store = `sqlite:${folder}/events.db`;
    await using platform = await createPlatform({
      engines: { store },
      taskTypes: [taskType('email-send'), taskType('report-gen')],
      roles: ['sweepers'],
    });
    await platform.start();
    await using bus = await openRole(store, 'bus');
    await eventually('both groups exist', async () => {
      const names = new Set((await bus.groups()).map(({ name }) => name));
      return ['email-send-orchestrator', 'report-gen-orchestrator'].every((group) =>
        names.has(group),
      );
    });
    await platform.stop();
    const groups = (await bus.groups()).map(({ name, subject }) => `${name} of ${subject}`);
    assert.ok(groups.includes('email-send-orchestrator of gbe.tasks.email-send.progress'));
  } finally {
    await rm(folder, { recursive: true });
  }
});
