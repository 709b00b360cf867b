import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { TaskHead } from '../../../tasks/task-job.ts';
import { packRecord, recordFields, runOf, unpackHead } from './record.ts';

const lua = readFileSync(new URL('scripts/include/record.lua', import.meta.url), 'utf8');

const head: TaskHead = {
  id: 'email-send.1',
  type: 'email-send',
  state: 'running',
  revision: 2,
  fence: 3,
  priority: 4,
  dueAtMs: 5,
  failures: 6,
  deadlineMs: 7,
  cancelAtMs: 8,
  claimedAtMs: 9,
  updatedAtMs: 10,
  endedAtMs: 11,
  worker: 'w-1',
  enqueuedAtMs: 15,
  tenant: 'acme',
  concurrencyKey: 'a\nb',
  parentId: 'order.1',
  labels: ['region=eu', 'size=l'],
};

test('TypeScript and Lua have the same fields of a record', () => {
  const [, table = ''] = /local F = \{(.*?)\}/s.exec(lua) ?? [];
  const fields = [...table.matchAll(/(\w+) = (\d+)/g)].map(([, name, at]) => [name, Number(at)]);
  assert.deepEqual(
    fields,
    recordFields.map((name, at) => [name, at + 1]),
  );
  const [, pattern = ''] = /local RECORD_PATTERN = (.*?)\nlocal/s.exec(lua) ?? [];
  assert.equal(pattern.match(/\(/g)?.length, recordFields.length);
});

test('packs a head in the order of the fields, and unpacks it', () => {
  const record = packRecord(head, { run: '{"n":1}', 'step:load': '{}' });
  const lines = record.split('\n');
  const own: Readonly<Record<string, unknown>> = {
    ...head,
    state: 'R',
    queueSignal: '',
    terminalSignal: '',
    concurrencyKey: '%a%0Ab',
    hasHash: 1,
    rest: head.parentId,
  };
  assert.deepEqual(
    lines.slice(0, recordFields.length),
    recordFields.map((name) => String(own[name])),
  );
  assert.deepEqual(unpackHead('email-send', '1', record), head);
  assert.equal(runOf(record), '{"n":1}');
});

test('unpacks a head without labels', () => {
  const bare = { ...head, labels: [], parentId: '' };
  assert.deepEqual(unpackHead('email-send', '1', packRecord(bare, {})), bare);
});
