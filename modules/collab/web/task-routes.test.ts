// Tasks, the board and notifications over HTTP.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createNotification } from '../notifications/notification-events.ts';
import { openRig, until, type Person, type Rig } from '../testing/web-rig.ts';

let rig: Rig;
let zoe: Person;
let alex: Person;
before(async () => {
  rig = await openRig();
  zoe = await rig.person('zoe');
  alex = await rig.person('alex');
});
after(() => rig[Symbol.asyncDispose]());

interface Task {
  readonly taskId: string;
  readonly title: string;
  readonly watchers: readonly string[];
}
interface List<Item> {
  readonly items: readonly Item[];
  readonly cursor?: string;
}

/** Creates a task and posts messages in its chat. */
async function make(
  workspaceId: string,
  title: string,
  { said = '', ...more }: { said?: string; type?: 'task' | 'bug'; isPublic?: boolean } = {},
): Promise<string> {
  const id = await rig.chat(zoe, workspaceId, { title, type: 'task', ...more });
  await until(async () => (await zoe.get(`/api/v1/tasks/${id}`)).status === 200);
  if (said !== '') await zoe.send('POST', `/api/v1/chats/${id}/messages`, { content: said });
  return id;
}

test('tasks are filtered, searched and sorted, without tasks of other users’ private chats', async () => {
  const w = await rig.workspace(zoe, alex);
  await make(w, 'Oil the wheel', {
    said: `#priority Low #assignee @${alex.name} #due 2026-12-24T18:00:00Z`,
  });
  await make(w, 'Repair the sluice', {
    said: '#priority High #status In Progress #due 2026-12-01',
  });
  await make(w, 'Wheel squeaks', { type: 'bug' });
  const secret = await make(w, 'Surprise', { isPublic: false });
  const titles = async (who: Person, query = ''): Promise<readonly string[]> =>
    (await who.get<List<Task>>(`/api/v1/workspaces/${w}/tasks${query}`)).body.items.map(
      ({ title }) => title,
    );
  await until(async () => (await titles(zoe, '?sort=due')).length === 2);
  assert.equal((await titles(zoe)).length, 4);
  assert.ok(!(await titles(alex)).includes('Surprise'));
  for (const [query, expected] of [
    ['?type=bug', ['Wheel squeaks']],
    ['?status=In%20Progress', ['Repair the sluice']],
    ['?assignee=me', ['Oil the wheel']],
    ['?assignee=@alex-core', ['Oil the wheel']],
    ['?assignee=none&type=task', ['Repair the sluice']],
    ['?priority=Low', ['Oil the wheel']],
    ['?due=2026-12-24', ['Oil the wheel']],
    ['?dueTo=2026-12-10', ['Repair the sluice']],
    ['?search=WHEEL&sort=created&order=asc', ['Oil the wheel', 'Wheel squeaks']],
    ['?sort=due', ['Repair the sluice', 'Oil the wheel']],
    ['?sort=priority', ['Repair the sluice', 'Oil the wheel', 'Wheel squeaks']],
  ] as const) {
    assert.deepEqual(await titles(alex, query), expected, query);
  }
  const page = await alex.get<List<Task>>(`/api/v1/workspaces/${w}/tasks?limit=2`);
  const rest = await alex.get<List<Task>>(
    `/api/v1/workspaces/${w}/tasks?limit=2&cursor=${page.body.cursor}`,
  );
  assert.equal(page.body.items.length + rest.body.items.length, 3);
  assert.equal((await alex.get(`/api/v1/workspaces/${w}/tasks?due=2026-02-30`)).status, 400);
  assert.equal((await alex.get(`/api/v1/tasks/${secret}`)).status, 404);
  assert.equal((await zoe.get(`/api/v1/tasks/${secret}`)).status, 200);

  const board = async (who: Person): Promise<unknown> =>
    (
      await who.get<{ columns: readonly { status: string; count: number; tasks: Task[] }[] }>(
        `/api/v1/workspaces/${w}/board?type=task`,
      )
    ).body.columns.map(({ status, count, tasks }) => [status, count, tasks.map((t) => t.title)]);
  assert.deepEqual(await board(zoe), [
    ['To Do', 2, ['Surprise', 'Oil the wheel']],
    ['In Progress', 1, ['Repair the sluice']],
    ['Done', 0, []],
  ]);
  assert.deepEqual(await board(alex), [
    ['To Do', 1, ['Oil the wheel']],
    ['In Progress', 1, ['Repair the sluice']],
    ['Done', 0, []],
  ]);
});

test('users who see a task can watch and unwatch it', async () => {
  const w = await rig.workspace(zoe, alex);
  const [open, closed] = [await make(w, 'Open'), await make(w, 'Closed', { isPublic: false })];
  const watch = (method: string, id: string) => alex.send(method, `/api/v1/tasks/${id}/watch`);
  assert.equal((await watch('PUT', open)).status, 204);
  const watchers = async () => (await alex.get<Task>(`/api/v1/tasks/${open}`)).body.watchers;
  assert.deepEqual(await watchers(), [alex.name]);
  assert.equal((await watch('DELETE', open)).status, 204);
  assert.deepEqual(await watchers(), []);
  assert.equal((await watch('PUT', closed)).status, 404);
  assert.equal((await watch('PUT', 'nothing')).status, 404);
});

test('recipients list, count, read and delete their notifications', async () => {
  interface Notifications extends List<{
    readonly notificationId: string;
    readonly readAt: unknown;
  }> {
    readonly unreadCount: number;
  }
  const reader = await rig.person('reader');
  for (const id of ['n1', 'n2', 'n3']) {
    const command = createNotification({
      userId: reader.name,
      type: 'task.status_changed',
      title: 'Task status changed',
      message: 'Task status changed to Done',
      resourceId: 't',
      workspaceId: 'w',
      chatId: 't',
      email: false,
    });
    await rig.platform.handle({ tenant: 'core', id, command });
  }
  const list = async (query = ''): Promise<Notifications> =>
    (await reader.get<Notifications>(`/api/v1/notifications${query}`)).body;
  await until(async () => (await list()).items.length === 3);
  assert.equal((await list()).unreadCount, 3);
  assert.ok(!('email' in ((await list()).items[0] ?? {})));
  const read = await reader.send('PUT', '/api/v1/notifications/n1/read');
  assert.equal(read.status, 200);
  assert.notEqual(read.body['readAt'], null);
  assert.deepEqual([(await list()).unreadCount, (await list('?unread=true')).items.length], [2, 2]);
  assert.equal((await zoe.send('PUT', '/api/v1/notifications/n2/read')).status, 404);
  assert.equal((await zoe.send('DELETE', '/api/v1/notifications/n2')).status, 404);
  assert.equal((await reader.send('DELETE', '/api/v1/notifications/n2')).status, 204);
  assert.deepEqual([(await list()).unreadCount, (await list()).items.length], [1, 2]);
  assert.equal((await zoe.get<Notifications>('/api/v1/notifications')).body.unreadCount, 0);
});
