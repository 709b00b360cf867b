import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { givenReactor } from 'millrace/testing';
import {
  changeChatTitle,
  changeChatType,
  chatCreated,
  includeInChat,
  messagePosted,
  postAnswer,
  recordTags,
} from './chat-events.ts';
import { botReactor, commandExecutor, conversionReactor, tagReactor } from './reactors.ts';
import {
  assigneeChanged,
  createTask,
  tagsAnswered,
  taskCreated,
  taskStatuses,
  titleChanged,
  typeChanged,
} from './tasks/task-events.ts';
import { task } from './tasks/task.ts';
import { collabRig, says, tenant, type CollabRig } from './testing/collab-rig.ts';

const timestamp = '2025-09-30T10:00:00.000Z';
const taskIds = { taskId: 'c-1', chatId: 'c-1', workspaceId: 'w-1' };
const change = { ...taskIds, changedBy: 'ada', timestamp };

function posted(authorId: string, content: string): ReturnType<typeof messagePosted> {
  return messagePosted({ messageId: 'm-1', chatId: 'c-1', authorId, content, timestamp });
}

test('the tags of a message are recorded with the parser version', async () => {
  await givenReactor(tagReactor)
    .when(posted('ada', 'Finished\n#status Done'), { id: 'c-1' })
    .thenSends([
      {
        id: 'c-1',
        command: recordTags({
          messageId: 'm-1',
          authorId: 'ada',
          parserVersion: 1,
          commands: [{ type: 'ChangeStatusCommand', status: 'Done' }],
          text: 'Finished',
          leftOut: 0,
        }),
      },
    ]);
});

test('messages without known tags and replies of the bot are ignored', async () => {
  const reactor = givenReactor(tagReactor);
  await reactor.when(posted('ada', 'Hello #status Done\n#hello')).thenSends([]);
  await reactor.when(posted('bot', '#status Done')).thenSends([]);
});

test('a typed chat gets a task, a discussion does not', async () => {
  await using rig = await collabRig();
  const executor = givenReactor(commandExecutor(rig.platform));
  const chat = { workspaceId: 'w-1', title: 'Crash', isPublic: true, createdBy: 'ada', timestamp };
  await executor.when(chatCreated({ ...chat, type: 'bug' }), { id: 'c-2' }).thenSends([
    {
      id: 'c-2',
      command: createTask({
        workspaceId: 'w-1',
        type: 'bug',
        title: 'Crash',
        isPublic: true,
        createdBy: 'ada',
      }),
    },
  ]);
  await executor.when(chatCreated({ ...chat, type: 'discussion' })).thenSends([]);
});

test('assignee names are resolved to members of the workspace', async () => {
  await using rig = await collabRig();
  await rig.send('c-1', says('ada', '#assignee @eve'));
  await rig.send('c-1', says('ada', '#assignee @stranger'));
  await rig.settle();
  const { state } = await rig.platform.load(task, { tenant, id: 'c-1' });
  assert.equal(state.assignee, 'eve');
  const lines = (await rig.events()).flatMap((event) =>
    tagsAnswered.is(event) ? event.payload.lines : [],
  );
  assert.deepEqual(lines, ['✅ Assigned to: @eve', '❌ User @stranger not found']);
});

test('the bot replies in the chat with one line per tag', async () => {
  await givenReactor(botReactor)
    .when(tagsAnswered({ messageId: 'm-1', chatId: 'c-1', lines: ['one', 'two'] }))
    .thenSends([{ id: 'c-1', command: postAnswer({ inReplyTo: 'm-1', content: 'one\ntwo' }) }]);
});

test('a chat adopts the type and title of its task, and the assignee joins', async () => {
  const reactor = givenReactor(conversionReactor);
  const creation = { createdBy: 'ada', timestamp, isPublic: true, status: 'New' } as const;
  await reactor
    .when(taskCreated({ ...taskIds, ...creation, type: 'bug', title: 'Crash' }))
    .thenSends([{ id: 'c-1', command: changeChatType({ type: 'bug', title: 'Crash' }) }]);
  const types = { oldType: 'bug', newType: 'task', status: 'To Do' } as const;
  await reactor
    .when(typeChanged({ ...change, ...types, title: 'Ship' }))
    .thenSends([{ id: 'c-1', command: changeChatType({ type: 'task', title: 'Ship' }) }]);
  await reactor
    .when(titleChanged({ ...change, oldTitle: 'Ship', newTitle: 'Sail' }))
    .thenSends([{ id: 'c-1', command: changeChatTitle({ title: 'Sail' }) }]);
  await reactor
    .when(assigneeChanged({ ...change, oldAssignee: null, newAssignee: 'eve' }))
    .thenSends([{ id: 'c-1', command: includeInChat({ userId: 'eve' }) }]);
  await reactor
    .when(assigneeChanged({ ...change, oldAssignee: 'eve', newAssignee: null }))
    .thenSends([]);
});

test('a task tag turns a discussion into a typed chat on the board', async () => {
  await using rig = await collabRig('discussion');
  await rig.send('c-1', says('bob', 'We need this\n#status Done\n#epic Big plan'));
  await rig.settle();
  const types = (await rig.events()).slice(-4).map(({ type }) => type);
  assert.deepEqual(types, [
    'chat.message-posted.v1',
    'chat.tags-parsed.v1',
    'task.created.v1',
    'chat.type-changed.v1',
  ]);
  const { state } = await rig.platform.load(task, { tenant, id: 'c-1' });
  assert.deepEqual([state.type, state.title, state.status], ['epic', 'Big plan', 'Planned']);
});

test('tags without effect in a discussion are recorded and change nothing', async () => {
  await using rig = await collabRig('discussion');
  await rig.send('c-1', says('bob', '#status Done'));
  await rig.settle();
  assert.equal((await rig.events()).at(-1)?.type, 'chat.tags-parsed.v1');
});

/** The status in the last message of the chat. */
async function lastRequested(rig: CollabRig): Promise<string> {
  const contents = (await rig.events()).flatMap((event) =>
    messagePosted.is(event) && event.payload.authorId !== 'bot' ? [event.payload.content] : [],
  );
  return contents.at(-1)?.replace('#status ', '') ?? '';
}

async function status(rig: CollabRig): Promise<string> {
  return (await rig.platform.load(task, { tenant, id: 'c-1' })).state.status;
}

test('the later of two concurrent status messages wins, on every replay', async () => {
  await using rig = await collabRig();
  await Promise.all([
    rig.send('c-1', says('ada', '#status In Progress')),
    rig.send('c-1', says('bob', '#status Done')),
  ]);
  await rig.settle();
  assert.equal(await status(rig), await lastRequested(rig));
  const before = await rig.events();
  await rig.replay();
  assert.deepEqual(await rig.events(), before);
});

test('the status of the last message wins in any order of reactors and with duplicates', async () => {
  const wish = fc.record({
    author: fc.constantFrom('ada', 'bob'),
    status: fc.constantFrom(...taskStatuses.task),
    /** Steps of reactors before the next message. */
    steps: fc.nat(12),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(wish, { minLength: 2, maxLength: 5 }),
      fc.array(fc.nat(1_000), { minLength: 50, maxLength: 50 }),
      async (wishes, dice) => {
        await using rig = await collabRig();
        let thrown = 0;
        const pick = (count: number): number =>
          count === 0 ? 0 : (dice[thrown++ % dice.length] ?? 0) % count;
        for (const { author, status: wanted, steps } of wishes) {
          await rig.send('c-1', says(author, `#status ${wanted}`));
          for (let step = 0; step < steps; step += 1) await rig.step(pick);
        }
        // The random choices could repeat one event endlessly, so the rest runs without them.
        for (let step = 0; step < 30; step += 1) await rig.step(pick);
        await rig.settle();
        assert.equal(await status(rig), wishes.at(-1)?.status);
        const replies = (await rig.events()).filter((event) => tagsAnswered.is(event));
        assert.equal(replies.length, wishes.length);
      },
    ),
    { numRuns: 6 },
  );
});
