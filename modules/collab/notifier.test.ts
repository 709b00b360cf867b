import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collabRig, says, type CollabRig } from './collab-rig.test.ts';
import {
  changePreferences,
  notificationCreated,
  registerUser,
  removeMember,
  watchTask,
} from './index.ts';
import { notificationIdOf } from './notifier.ts';

interface Told {
  readonly userId: string;
  readonly type: string;
  readonly email: boolean;
}

async function told(rig: CollabRig): Promise<readonly Told[]> {
  await rig.settle();
  return (await rig.events()).flatMap((event) => {
    if (!notificationCreated.is(event)) return [];
    const { userId, type, email } = event.payload;
    return [{ userId, type, email }];
  });
}

test('those who take part, watch, or have the task are told, never the one who did it', async () => {
  await using rig = await collabRig();
  await rig.send('c-1', says('ada', '#status Done'));
  assert.deepEqual(await told(rig), [{ userId: 'bob', type: 'task.status_changed', email: false }]);
  await rig.send('c-1', watchTask({ userId: 'eve' }));
  await rig.send('c-1', says('bob', '#status To Do'));
  const users = (await told(rig)).slice(1).map(({ userId }) => userId);
  assert.deepEqual(users.toSorted(), ['ada', 'eve']);
});

test('a notification says what the document says, under an id of the event and the recipient', async () => {
  await using rig = await collabRig();
  await rig.send('c-1', says('ada', '#status Done'));
  await rig.settle();
  const events = await rig.events();
  const cause = events.find(({ type }) => type === 'task.status-changed.v1');
  const found = events.find((event) => notificationCreated.is(event));
  assert.ok(cause && found);
  assert.equal(found.aggregate.id, notificationIdOf(cause.eventId, 'bob'));
  assert.equal(found.causationId, cause.eventId);
  const { createdAt: _time, ...payload } = found.payload as Record<string, unknown>;
  assert.deepEqual(payload, {
    userId: 'bob',
    type: 'task.status_changed',
    title: 'Task status changed',
    message: 'Task status changed to Done',
    resourceId: 'c-1',
    workspaceId: 'w-1',
    chatId: 'c-1',
    email: false,
  });
});

test('every change of a task is told, and to whom it was given as such', async () => {
  await using rig = await collabRig('bug');
  await rig.send(
    'c-1',
    says('ada', '#priority High #due 2026-10-20 #due #title New #severity Major #assignee @bob'),
  );
  await rig.send('c-1', says('ada', '#task Newer'));
  const types = (await told(rig)).map(({ type }) => type);
  assert.deepEqual(types, [
    'task.priority_changed',
    'task.due_changed',
    'task.due_changed',
    'task.title_changed',
    'task.severity_changed',
    'task.assigned',
    'task.type_changed',
  ]);
});

test('a mail goes to those who have an address and want one', async () => {
  await using rig = await collabRig();
  const mails = async (): Promise<readonly (readonly [string, boolean])[]> =>
    (await told(rig)).map(({ type, email }) => [type, email] as const).slice(-1);
  await rig.send('bob', registerUser({ username: 'bob', email: 'bob@example.org' }));
  await rig.send('c-1', says('ada', '#status Done'));
  assert.deepEqual(await mails(), [['task.status_changed', false]]);
  await rig.send('c-1', says('ada', '#assignee @bob'));
  assert.deepEqual(await mails(), [['task.assigned', true]]);
  await rig.send('bob', changePreferences({ email: 'all' }));
  await rig.send('c-1', says('ada', '#status To Do'));
  assert.deepEqual(await mails(), [['task.status_changed', true]]);
  await rig.send('bob', changePreferences({ email: 'none' }));
  await rig.send('c-1', says('ada', '#assignee @none\n#assignee @bob'));
  assert.deepEqual(await mails(), [['task.assigned', false]]);
});

test('who has left the workspace is told nothing more', async () => {
  await using rig = await collabRig();
  await rig.send('w-1', removeMember({ userId: 'bob', by: 'ada' }));
  await rig.send('c-1', says('ada', '#status Done'));
  assert.deepEqual(await told(rig), []);
});
