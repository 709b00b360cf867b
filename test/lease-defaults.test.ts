import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busLimits } from '../src/bus/bus-limits.ts';
import { outboxLimits } from '../src/outbox/outbox-limits.ts';
import { taskLimits } from '../src/tasks/task-limits.ts';

test('by default, everything that a killed process has claimed is free again within 15 seconds', () => {
  for (const [name, limits] of Object.entries({ busLimits, outboxLimits, taskLimits })) {
    assert.ok(limits.leaseMsDefault <= 15_000, name);
  }
});
