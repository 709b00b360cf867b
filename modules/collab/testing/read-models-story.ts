// Runs the same events and queries on every engine of read models.

import assert from 'node:assert/strict';
import type { NewCommand } from 'millrace/contracts';
import { createPlatform, type Platform, type PlatformConfig } from 'millrace/platform';
import type { DocumentQueries, Page } from 'millrace/projections';
import {
  chatCreated,
  createChat,
  deleteMessage,
  editMessage,
  postMessage,
} from '../chat-events.ts';
import {
  messagesOf,
  searchMessages,
  visibleChats,
  type MessageDocument,
} from '../chat-read-models.ts';
import { collab } from '../collab.ts';
import type { ChatDocument, NotificationDocument, TaskDocument } from '../documents.ts';
import {
  createNotification,
  deleteNotification,
  readNotification,
} from '../notifications/notification-events.ts';
import { notificationsOf } from '../notifications/notification.ts';
import { parseTags } from '../tasks/tag-parser.ts';
import { applyTags, createTask, watchTask } from '../tasks/task-events.ts';
import { findTasks, taskBoard } from '../tasks/task-read-models.ts';
import { changePreferences } from '../user-events.ts';
import { ensureUser, type UserDocument } from '../user.ts';
import {
  addMember,
  createInvite,
  createWorkspace,
  removeMember,
  useInvite,
} from '../workspace-events.ts';
import { newInviteToken, type WorkspaceDocument } from '../workspace.ts';

const tenant = 'core';
type Engines = NonNullable<PlatformConfig['engines']>;

export async function readModelsStory(engines: Engines): Promise<void> {
  await using platform = await createPlatform({
    engines,
    // No reactors: these tests query documents only.
    modules: [{ ...collab(), reactors: [] }],
  });
  await platform.start();
  const { projections } = platform.modules;
  const send = async (id: string, command: NewCommand): Promise<void> => {
    await platform.handle({ tenant, id, command });
  };
  const caughtUp = async (): Promise<void> => {
    const head = await platform.engines.store.head();
    await Promise.all(
      projections.map((each) => platform.waitFor(each, head, { timeoutMs: 60_000 })),
    );
  };
  const documents = <Document>(aggregate: string): DocumentQueries<Document> =>
    platform.documents({ bc: 'collab', aggregate }) as DocumentQueries<Document>;
  const [users, workspaces] = [
    documents<UserDocument>('user'),
    documents<WorkspaceDocument>('workspace'),
  ];
  const [chats, messages] = [
    documents<ChatDocument>('chat'),
    documents<MessageDocument>('message'),
  ];
  const [tasks, notifications] = [
    documents<TaskDocument>('task'),
    documents<NotificationDocument>('notification'),
  ];
  const { load } = platform;
  const context = {
    load,
    send: (...asked: Parameters<Platform['handle']>) => platform.handle(...asked),
  };

  await story('user names are unique, and the document has no address', async () => {
    for (const email of ['ada@example.org', 'a@example.org', 'a@example.org']) {
      const ada = await ensureUser(context, { tenant, principal: 'ada', email });
      assert.deepEqual(ada, { userId: 'ada', username: 'ada' });
    }
    const second = await ensureUser(context, { tenant, principal: 'x|2', username: 'Ada' });
    assert.equal(second.username, 'Ada-2');
    await send('ada', changePreferences({ email: 'all' }));
    await caughtUp();
    const found = await users.byIndex(tenant, 'username', 'ada-2');
    assert.equal(found?.id, second.userId);
    const { registeredAt: _at, ...shown } = (await users.get(tenant, 'ada'))?.document ?? {};
    assert.deepEqual(shown, { userId: 'ada', username: 'ada', emailPreference: 'all' });
  });

  await story('workspaces are found by their members', async () => {
    for (const id of ['w-1', 'w-2', 'w-3']) {
      await send(id, createWorkspace({ name: id, createdBy: 'ada', username: 'ada' }));
    }
    const bob = { userId: 'bob', username: 'bob', role: 'member', by: 'ada' } as const;
    await send('w-1', addMember(bob));
    await send('w-2', addMember(bob));
    await send('w-2', removeMember({ userId: 'bob', by: 'bob' }));
    const {
      token: _shown,
      workspaceId: _at,
      ...invite
    } = newInviteToken({
      workspaceId: 'w-3',
      inviteId: 'i-1',
    });
    const expiresAt = new Date(Date.now() + 600_000).toISOString();
    await send('w-3', createInvite({ ...invite, expiresAt, maxUses: 2, role: 'admin', by: 'ada' }));
    await send('w-3', useInvite({ ...invite, userId: 'eve', username: 'eve' }));
    await caughtUp();
    const of = async (group: string): Promise<readonly string[]> =>
      idsOf(await workspaces.byRange(tenant, 'member', { group })).toSorted();
    assert.deepEqual(await of('ada'), ['w-1', 'w-2', 'w-3']);
    assert.deepEqual(await of('bob'), ['w-1']);
    assert.deepEqual(await of('eve'), ['w-3']);
    const third = (await workspaces.get(tenant, 'w-3'))?.document;
    assert.deepEqual(
      third?.members.map(({ username, role }) => [username, role]),
      [
        ['ada', 'admin'],
        ['eve', 'admin'],
      ],
    );
    assert.deepEqual(third?.invites, [
      {
        inviteId: 'i-1',
        role: 'admin',
        expiresAt,
        maxUses: 2,
        uses: 1,
        isRevoked: false,
        createdBy: 'ada',
      },
    ]);
  });

  await story('one sees public chats and the private ones that one takes part in', async () => {
    const subject = {
      workspaceId: 'w-1',
      type: 'discussion',
      title: 'T',
      createdBy: 'ada',
    } as const;
    const all = Array.from({ length: 12 }, (_, at) => `c-${String(at).padStart(2, '0')}`);
    for (const [at, id] of all.entries()) {
      const participants = at % 3 === 1 ? ['bob'] : [];
      await send(id, createChat({ ...subject, isPublic: at % 3 === 0, participants }));
    }
    await caughtUp();
    const order = await ordered(all);
    for (const [userId, sees] of [
      ['ada', () => true],
      ['bob', (at: number) => at % 3 !== 2],
      ['eve', (at: number) => at % 3 === 0],
    ] as const) {
      for (const limit of [1, 2, 5, 50]) {
        const seen = await walk((cursor) =>
          visibleChats(chats, { tenant, workspaceId: 'w-1', userId, limit, cursor }),
        );
        assert.deepEqual(
          seen,
          order.filter((id) => sees(Number(id.slice(2)))),
        );
      }
    }
    await assert.rejects(
      visibleChats(chats, { tenant, workspaceId: 'w-1', userId: 'ada', cursor: 'x' }),
      { code: 'CURSOR_INVALID' },
    );

    /** Newest first; chats of the same millisecond by id. */
    async function ordered(ids: readonly string[]): Promise<readonly string[]> {
      const created = new Map<string, string>();
      for await (const event of platform.engines.store.readAll()) {
        if (chatCreated.is(event)) created.set(event.aggregate.id, event.payload.timestamp);
      }
      const key = (id: string): string => `${created.get(id)} ${id}`;
      return ids.toSorted((a, b) => (key(a) < key(b) ? 1 : -1));
    }
  });

  await story(
    'messages come in the order of their chat, and are found by their words',
    async () => {
      for (let at = 0; at < 7; at += 1) {
        const content = `Number ${at}: ${at % 2 === 0 ? 'EVEN' : 'odd'} Страница 🚀`;
        await send('c-00', postMessage({ messageId: `m-${at}`, authorId: 'ada', content }));
      }
      await send('c-03', postMessage({ messageId: 'm-x', authorId: 'ada', content: 'even' }));
      await send('c-00', editMessage({ messageId: 'm-2', by: 'ada', content: 'changed' }));
      await send('c-00', deleteMessage({ messageId: 'm-3', by: 'ada' }));
      await caughtUp();
      const at = { tenant, chatId: 'c-00' };
      const newest = await walk((cursor) => messagesOf(messages, { ...at, limit: 2, cursor }));
      assert.deepEqual(newest, ['m-6', 'm-5', 'm-4', 'm-2', 'm-1', 'm-0']);
      const oldest = await walk((cursor) =>
        messagesOf(messages, { ...at, limit: 4, cursor, direction: 'ascending' }),
      );
      assert.deepEqual(oldest, newest.toReversed());
      const search = (text: string): Promise<readonly string[]> =>
        walk((cursor) => searchMessages(messages, { ...at, text, limit: 2, cursor }));
      assert.deepEqual(await search('even'), ['m-6', 'm-4', 'm-0']);
      assert.deepEqual(await search('страница ODD'), ['m-5', 'm-1']);
      assert.deepEqual(await search('changed'), ['m-2']);
      assert.deepEqual(await search('odd even'), []);
      assert.deepEqual(await search('…'), []);
      const edited = (await messages.get(tenant, 'm-2'))?.document;
      assert.equal(edited?.content, 'changed');
      assert.ok(edited?.editedAt);
    },
  );

  await story('tasks are listed, filtered and sorted, and stand on the board', async () => {
    const lines = [
      '#priority Low\n#due 2026-03-01',
      '#status Done\n#priority High',
      '#status In Progress\n#assignee @bob\n#due 2026-01-01',
      '#priority Medium #title Fix the roof',
    ];
    for (const [at, tags] of lines.entries()) {
      const id = `c-${String(at).padStart(2, '0')}`;
      const origin = { workspaceId: 'w-1', isPublic: at % 3 === 0 };
      await send(
        id,
        createTask({ ...origin, type: 'task', title: `Task ${at}`, createdBy: 'ada' }),
      );
      const { commands } = parseTags(tags);
      const wanted = { messageId: 'm', by: 'ada', tags: [...commands], leftOut: 0 };
      const bob = [{ username: 'bob', userId: 'bob' }];
      await send(id, applyTags({ ...origin, ...wanted, users: bob }));
      // The command that the conversion reactor would send: private tasks are found by their chats.
      await send(id, { type: 'chat.change-type', payload: { type: 'task', title: `Task ${at}` } });
    }
    const epic = { workspaceId: 'w-1', isPublic: true, type: 'epic', title: 'Big' } as const;
    await send('c-06', createTask({ ...epic, createdBy: 'ada' }));
    await send('c-06', watchTask({ userId: 'bob' }));
    await caughtUp();
    const source = { tasks, chats };
    const find = (
      userId: string,
      asked: Pick<Parameters<typeof findTasks>[1], 'filters' | 'sort'> = {},
    ): Promise<readonly string[]> =>
      walk((cursor) =>
        findTasks(source, { tenant, workspaceId: 'w-1', userId, limit: 2, cursor, ...asked }),
      );
    assert.deepEqual((await find('ada')).toSorted(), ['c-00', 'c-01', 'c-02', 'c-03', 'c-06']);
    assert.deepEqual((await find('bob')).toSorted(), ['c-00', 'c-01', 'c-03', 'c-06']);
    assert.deepEqual((await find('eve')).toSorted(), ['c-00', 'c-03', 'c-06']);
    assert.deepEqual(await find('ada', { filters: { status: 'Done' } }), ['c-01']);
    assert.deepEqual(await find('eve', { filters: { status: 'Done' } }), []);
    assert.deepEqual(await find('ada', { filters: { type: 'epic' } }), ['c-06']);
    assert.deepEqual(await find('ada', { filters: { assignee: 'bob' } }), ['c-02']);
    assert.deepEqual(await find('ada', { filters: { priority: 'Medium' } }), ['c-03']);
    assert.deepEqual(await find('ada', { filters: { search: 'ROO fix' } }), ['c-03']);
    assert.deepEqual(await find('ada', { filters: { dueFrom: '2026-02-01' } }), ['c-00']);
    assert.deepEqual(await find('ada', { sort: 'due' }), ['c-02', 'c-00']);
    const early = { sort: 'due', filters: { dueTo: '2026-01-01' } } as const;
    assert.deepEqual(await find('ada', early), ['c-02']);
    assert.deepEqual((await find('ada', { sort: 'priority' })).slice(0, 3), [
      'c-01',
      'c-03',
      'c-00',
    ]);

    const board = async (userId: string, type?: 'task' | 'epic'): Promise<unknown> =>
      (await taskBoard(source, { tenant, workspaceId: 'w-1', userId, type })).map(
        ({ status, count, tasks: shown }) => [status, count, shown.map(({ taskId }) => taskId)],
      );
    assert.deepEqual(await board('ada', 'task'), [
      ['To Do', 2, ['c-03', 'c-00']],
      ['In Progress', 1, ['c-02']],
      ['Done', 1, ['c-01']],
    ]);
    assert.deepEqual(await board('eve', 'task'), [
      ['To Do', 2, ['c-03', 'c-00']],
      ['In Progress', 0, []],
      ['Done', 0, []],
    ]);
    assert.deepEqual(await board('eve', 'epic'), [
      ['Planned', 1, ['c-06']],
      ['In Progress', 0, []],
      ['Completed', 0, []],
    ]);
    const all = (await board('ada')) as readonly (readonly [string, number])[];
    assert.deepEqual(
      all.map(([status, count]) => `${status} ${count}`).join(', '),
      'To Do 2, In Progress 1, Done 1, New 0, Investigating 0, Fixed 0, Verified 0, Planned 1, Completed 0',
    );
    assert.deepEqual((await tasks.get(tenant, 'c-06'))?.document.watchers, ['bob']);
  });

  await story('notifications are counted until they are read', async () => {
    for (const [id, userId] of Object.entries({ n1: 'bob', n2: 'bob', n3: 'bob', n4: 'eve' })) {
      await send(
        id,
        createNotification({
          userId,
          type: 'task.assigned',
          title: 'Task assigned',
          message: 'A task was assigned to you',
          resourceId: 'c-00',
          workspaceId: 'w-1',
          chatId: 'c-00',
          email: true,
        }),
      );
    }
    await send('n1', readNotification({ by: 'bob' }));
    await send('n2', deleteNotification({ by: 'bob' }));
    await caughtUp();
    const all = await notificationsOf(notifications, { tenant, userId: 'bob' });
    assert.deepEqual([idsOf(all).toSorted(), all.unreadCount], [['n1', 'n3'], 1]);
    const unread = await notificationsOf(notifications, {
      tenant,
      userId: 'bob',
      unreadOnly: true,
    });
    assert.deepEqual([idsOf(unread), unread.unreadCount], [['n3'], 1]);
    assert.ok(!('email' in (all.items[0]?.document ?? {})));
  });
}

/** The name in failure messages. */
async function story(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw new Error(name, { cause: error });
  }
}

function idsOf({ items }: Page<object>): readonly string[] {
  return items.map(({ id }) => id);
}

async function walk(
  read: (cursor: string | undefined) => Promise<Page<object>>,
): Promise<readonly string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    ids.push(...idsOf(page));
    ({ cursor } = page);
  } while (cursor !== undefined);
  return ids;
}
