import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeClock } from 'millrace/testing';
import { joinChat, leaveChat } from '../chat-events.ts';
import { chat } from '../chat.ts';
import type { Role } from '../fields.ts';
import { statusChanged, unwatchTask, watchTask } from '../tasks/task-events.ts';
import { task } from '../tasks/task.ts';
import { collabRig, says, type CollabRig } from '../testing/collab-rig.ts';
import { changePreferences, registerUser } from '../user-events.ts';
import { addMember, changeMemberRole, removeMember } from '../workspace-events.ts';
import { workspace } from '../workspace.ts';
import { notificationCreated } from './notification-events.ts';
import { notificationIdOf, recipientsOf } from './notifier.ts';

interface Notified {
  readonly userId: string;
  readonly type: string;
  readonly email: boolean;
}

async function notificationsIn(rig: CollabRig): Promise<readonly Notified[]> {
  await rig.settle();
  return (await rig.events()).flatMap((event) => {
    if (!notificationCreated.is(event)) return [];
    const { userId, type, email } = event.payload;
    return [{ userId, type, email }];
  });
}

test('participants, watchers and the assignee are notified, but not the user who made the change', async () => {
  await using rig = await collabRig();
  await rig.send('c-1', says('ada', '#status Done'));
  assert.deepEqual(await notificationsIn(rig), [
    { userId: 'bob', type: 'task.status_changed', email: false },
  ]);
  await rig.send('c-1', watchTask({ userId: 'eve' }));
  await rig.send('c-1', says('bob', '#status To Do'));
  const users = (await notificationsIn(rig)).slice(1).map(({ userId }) => userId);
  assert.deepEqual(users.toSorted(), ['ada', 'eve']);
});

test('a notification has the text of the document and an id derived from event and recipient', async () => {
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

test('every change of a task notifies, and the new assignee gets a specific notification', async () => {
  await using rig = await collabRig('bug');
  await rig.send(
    'c-1',
    says('ada', '#priority High #due 2026-10-20 #due #title New #severity Major #assignee @bob'),
  );
  await rig.send('c-1', says('ada', '#task Newer'));
  const types = (await notificationsIn(rig)).map(({ type }) => type);
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

test('e-mail goes to recipients with an address and a matching preference', async () => {
  await using rig = await collabRig();
  const mails = async (): Promise<readonly (readonly [string, boolean])[]> =>
    (await notificationsIn(rig)).map(({ type, email }) => [type, email] as const).slice(-1);
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

test('former members of the workspace are not notified', async () => {
  await using rig = await collabRig();
  await rig.send('w-1', removeMember({ userId: 'bob', by: 'ada' }));
  await rig.send('c-1', says('ada', '#status Done'));
  assert.deepEqual(await notificationsIn(rig), []);
});

test('only users who were involved at the time of the event are notified', () => {
  const role: Role = 'member';
  const now = {
    task: { ...task.initial, assignee: 'kim', assignedAtMs: 300, watchers: { lea: 200, max: 301 } },
    chat: {
      ...chat.initial,
      participants: {
        ada: { role, sinceMs: 100 },
        bob: { role, sinceMs: 100 },
        eve: { role, sinceMs: 400 },
        bot: { role, sinceMs: 100 },
        constructor: { role, sinceMs: 100 },
      },
    },
    workspace: {
      ...workspace.initial,
      members: Object.fromEntries(
        ['ada', 'bob', 'eve', 'kim', 'lea', 'max'].map((username) => [
          username,
          { username, role, sinceMs: username === 'lea' ? 350 : 50 },
        ]),
      ),
    },
  } as const;
  const at = (atMs: number): readonly string[] =>
    recipientsOf(now, { changedBy: 'ada', atMs }).toSorted();
  assert.deepEqual(at(99), []);
  assert.deepEqual(at(100), ['bob']);
  assert.deepEqual(at(299), ['bob']);
  assert.deepEqual(at(300), ['bob', 'kim']);
  assert.deepEqual(at(350), ['bob', 'kim', 'lea', 'max']);
  assert.deepEqual(at(400), ['bob', 'eve', 'kim', 'lea', 'max']);
});

test('a replay does not notify users who joined or rejoined later', async () => {
  const clock = fakeClock();
  await using rig = await collabRig('task', { clock });
  const eve = { userId: 'eve', username: 'eve', role: 'member', by: 'ada' } as const;
  const joins = (role: 'admin' | 'member') => joinChat({ userId: 'eve', role, by: 'ada' });
  const changes: readonly (() => Promise<void>)[] = [
    () => rig.send('c-1', says('ada', '#status In Progress')),
    () => rig.send('c-1', joins('member')),
    () => rig.send('c-1', says('ada', '#status Done')),
    () => rig.send('c-1', leaveChat({ userId: 'eve', by: 'eve' })),
    () => rig.send('c-1', says('ada', '#status To Do')),
    () => rig.send('c-1', watchTask({ userId: 'eve' })),
    () => rig.send('c-1', says('ada', '#priority High')),
    () => rig.send('c-1', unwatchTask({ userId: 'eve' })),
    () => rig.send('c-1', says('ada', '#priority Low')),
    () => rig.send('c-1', says('ada', '#assignee @eve')),
    () => rig.send('w-1', removeMember({ userId: 'eve', by: 'ada' })),
    () => rig.send('c-1', says('ada', '#title Mill')),
    () => rig.send('w-1', addMember(eve)),
    () => rig.send('c-1', watchTask({ userId: 'eve' })),
    () => rig.send('c-1', says('ada', '#title Wheel')),
  ];
  for (const change of changes) {
    await clock.advance(1_000);
    await change();
    const once = await notificationsIn(rig);
    await rig.replay();
    assert.deepEqual(await notificationsIn(rig), once);
  }
  const eves = (await notificationsIn(rig)).flatMap(({ userId, type }) =>
    userId === 'eve' ? [type] : [],
  );
  const [status, priority] = ['task.status_changed', 'task.priority_changed'];
  assert.deepEqual(eves, [status, priority, 'task.assigned', 'task.title_changed']);
});

test('a role change does not interrupt the involvement of a user', async () => {
  const clock = fakeClock();
  await using rig = await collabRig('task', { clock });
  await clock.advance(1_000);
  await rig.send('c-1', says('ada', '#status Done'));
  while (!(await rig.events()).some((event) => statusChanged.is(event))) await rig.step();
  await clock.advance(1_000);
  await rig.send('c-1', joinChat({ userId: 'bob', role: 'admin', by: 'ada' }));
  await rig.send('w-1', changeMemberRole({ userId: 'bob', role: 'admin', by: 'ada' }));
  const users = (await notificationsIn(rig)).map(({ userId }) => userId);
  assert.deepEqual(users, ['bob']);
});
