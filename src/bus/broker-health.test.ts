import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from '../testing/fake-clock.ts';
import { createBrokerHealth } from './broker-health.ts';

test('a call from before the reconnect that fails later does not report a second outage', () => {
  const lines: string[] = [];
  const log = (_fields: object, message: string): void => void lines.push(message);
  const observer = { log: { debug: log, info: log, warn: log, error: log } };
  const health = createBrokerHealth({ clock: fakeClock(), observer }, { group: 'g' });
  const before = health.resumes;
  health.isDown(new Error('not acknowledged'), before);
  health.isDown(new Error('not fetched'), before);
  health.isUp();
  health.isDown(new Error('an earlier fetch timed out'), before);
  health.isUp();
  assert.deepEqual(lines, ['bus consumer lost its broker', 'bus consumer resumed']);
  health.isDown(new Error('not fetched'), health.resumes);
  assert.equal(lines.length, 3);
});
