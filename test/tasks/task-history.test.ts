// Every rule of the checker detects its bug.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTaskHistory, type TaskRule, type TaskRunHistory } from './task-history.ts';

const good: TaskRunHistory = {
  steps: ['a', 'b'],
  enqueued: [
    { key: 'k1', id: 'j1' },
    { key: 'k1', id: 'j1' },
  ],
  jobs: [{ id: 'j1', key: 'k1', state: 'completed' }],
  terminals: ['j1'],
  notes: [
    { kind: 'ran', id: 'j1', step: 'a', atNs: '1' },
    // The step was not finished before the kill, so it may run again.
    { kind: 'ran', id: 'j1', step: 'a', atNs: '2' },
    { kind: 'finished', id: 'j1', step: 'a', atNs: '3' },
    { kind: 'ran', id: 'j1', step: 'b', atNs: '4' },
    { kind: 'finished', id: 'j1', step: 'b', atNs: '5' },
  ],
};

test('a correct history has no violation', () => {
  assert.deepEqual(checkTaskHistory(good), []);
});

const bugs: readonly (readonly [TaskRule, string, Partial<TaskRunHistory>])[] = [
  ['lost', 'an acknowledged job is missing', { jobs: [], terminals: [], notes: [] }],
  [
    'not-ended',
    'a job never reached a terminal state',
    { jobs: [{ id: 'j1', key: 'k1', state: 'running' }] },
  ],
  ['ended-twice', 'two workers completed one job', { terminals: ['j1', 'j1'] }],
  ['terminal-not-published', 'the terminal signal of a job was not published', { terminals: [] }],
  [
    'step-ran-again',
    'a finished step ran in another process',
    { notes: [...good.notes, { kind: 'ran', id: 'j1', step: 'a', atNs: '6' }] },
  ],
  ['step-missing', 'a job completed without one of its steps', { notes: good.notes.slice(0, 3) }],
  [
    'stored-twice',
    'one key created two jobs',
    {
      enqueued: [...good.enqueued, { key: 'k1', id: 'j2' }],
      jobs: [...good.jobs, { id: 'j2', key: 'k1', state: 'completed' }],
    },
  ],
  [
    'phantom',
    'a job ran that was never enqueued',
    { jobs: [...good.jobs, { id: 'j9', key: 'k9', state: 'completed' }] },
  ],
];

for (const [rule, bug, change] of bugs) {
  test(`the checker reports ${rule} if ${bug}`, () => {
    const rules = checkTaskHistory({ ...good, ...change }).map((each) => each.rule);
    assert.ok(rules.includes(rule), rules.join(', '));
  });
}
