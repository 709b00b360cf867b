import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toSnapshot, toSnapshotDocument } from './aggregate-storage.ts';

const stream = 'collab.chat.v1-core-chat-uuid';
const about = {
  revision: 9_899,
  eventId: 'event-uuid',
  codeVersion: 2,
  takenAt: '2025-09-30T12:00:00.000Z',
};

test('a snapshot has the shape of the architecture document', () => {
  const participants = [{ userId: 'user-1', role: 'admin' }];
  const state = { type: 'task', createdBy: 'user-uuid', participants };
  assert.deepEqual(toSnapshotDocument(stream, { ...about, state }), {
    _id: stream,
    aggregateId: 'chat-uuid',
    ...state,
    version: 9_900,
    snapshotAt: new Date('2025-09-30T12:00:00.000Z'),
    snapshotEventId: 'event-uuid',
    codeVersion: 2,
  });
});

test('every state is returned as it was saved, also if it cannot be a document', () => {
  const states = [
    { type: 'task' },
    {},
    { version: 7 },
    { _id: 1 },
    { 'a.b': 1 },
    { $set: 1 },
    { list: [[1]] },
    [],
    [1],
    null,
    'text',
    0,
    { text: 'x'.repeat(200_000) },
  ];
  for (const state of states) {
    const snapshot = { ...about, state };
    assert.deepEqual(toSnapshot(toSnapshotDocument(stream, snapshot)), snapshot);
  }
});
