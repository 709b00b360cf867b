// The task type of the kill tests, with enough retries for all kills.

import { taskType } from '../../src/tasks/index.ts';

export const rigSteps = ['load', 'render', 'send'] as const;

export const rigType = taskType('rig-job', {
  workers: 10,
  retries: 1_000,
  stepTimeoutMs: 10_000,
  backoff: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 },
});
