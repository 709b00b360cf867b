import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCommandHandler, type AggregateEvent } from 'millrace/aggregates';
import { buildStreamName, createEnvelope, type NewEvent } from 'millrace/contracts';
import { idFromKey } from 'millrace/foundation';
import { given } from 'millrace/testing';
import {
  changeChatTitle,
  changeChatType,
  chatCreated,
  chatTitleChanged,
  chatTypeChanged,
  createChat,
  deleteMessage,
  editMessage,
  includeInChat,
  joinChat,
  leaveChat,
  messageDeleted,
  messageEdited,
  messagePosted,
  participantJoined,
  participantLeft,
  postAnswer,
  postMessage,
  recordTags,
  tagsParsed,
} from './chat-events.ts';
import { chat } from './chat.ts';
import { collabRig, says, tenant } from './testing/collab-rig.ts';

// `given` runs every aggregate with the id `given` at this time.
const chatId = 'given';
const nowMs = Date.UTC(2025, 8, 30, 10);
const timestamp = new Date(nowMs).toISOString();
const subject = {
  workspaceId: 'w-1',
  type: 'discussion',
  title: 'General',
  isPublic: false,
  createdBy: 'ada',
} as const;
const created = [
  chatCreated({ ...subject, timestamp }),
  participantJoined({ userId: 'ada', role: 'admin' }),
];
const two = [...created, participantJoined({ userId: 'bob', role: 'member' })];
const open = [chatCreated({ ...subject, isPublic: true, timestamp }), ...created.slice(1)];
const bobs = messagePosted({ messageId: 'm-1', chatId, authorId: 'bob', content: 'Hi', timestamp });
const said = [...two, bobs];
const minutes = (count: number): { readonly nowMs: number } => ({ nowMs: nowMs + count * 60_000 });

test('the creator of a chat is its admin, and initial participants are members', () => {
  given(chat, [])
    .when(createChat({ ...subject, participants: ['bob', 'ada', 'bob', 'bot'] }))
    .then(two);
  given(chat, created).when(createChat(subject)).thenRejected('chat-exists');
});

test('users join a public chat themselves, and an admin adds them to a private one', () => {
  const joins = (userId: string, by: string) => joinChat({ userId, role: 'member', by });
  const joined = [participantJoined({ userId: 'eve', role: 'member' })];
  given(chat, open).when(joins('eve', 'eve')).then(joined);
  given(chat, created).when(joins('eve', 'eve')).thenRejected('not-an-admin');
  given(chat, created).when(joins('eve', 'ada')).then(joined);
  given(chat, two).when(joins('bob', 'ada')).then([]);
  given(chat, open)
    .when(joinChat({ userId: 'eve', role: 'admin', by: 'eve' }))
    .thenRejected('not-an-admin');
  given(chat, []).when(joins('eve', 'eve')).thenRejected('chat-unknown');
});

test('a role change keeps the start time of a participant', () => {
  const sinceMs = nowMs;
  const joined = { userId: 'bob', role: 'member' } as const;
  given(chat, created)
    .when(joinChat({ ...joined, by: 'ada' }))
    .then([participantJoined(joined)])
    .thenState(({ participants }) => participants['bob']?.sinceMs === sinceMs);
  const bobSince = (...events: readonly (readonly [NewEvent, string])[]): number | undefined =>
    events.reduce(
      (state, [event, occurredAt], at) => chat.evolve(state, placed(event, occurredAt, at)),
      chat.initial,
    ).participants['bob']?.sinceMs;
  const [first, second, third] = [0, 1, 2].map((at) => new Date(nowMs + at).toISOString());
  assert.ok(first && second && third);
  const promoted = participantJoined({ userId: 'bob', role: 'admin' });
  assert.equal(bobSince([participantJoined(joined), first], [promoted, second]), Date.parse(first));
  assert.equal(
    bobSince(
      [participantJoined(joined), first],
      [participantLeft(joined), second],
      [participantJoined(joined), third],
    ),
    Date.parse(third),
  );
});

test('the assignee of the task becomes a participant', () => {
  given(chat, created)
    .when(includeInChat({ userId: 'bob' }))
    .then([participantJoined({ userId: 'bob', role: 'member' })]);
  given(chat, created)
    .when(includeInChat({ userId: 'ada' }))
    .then([]);
  given(chat, [])
    .when(includeInChat({ userId: 'ada' }))
    .thenRejected('chat-unknown');
});

test('participants leave or are removed by an admin', () => {
  const left = [participantLeft({ userId: 'bob', role: 'member' })];
  given(chat, two)
    .when(leaveChat({ userId: 'bob', by: 'bob' }))
    .then(left);
  given(chat, two)
    .when(leaveChat({ userId: 'bob', by: 'ada' }))
    .then(left);
  given(chat, two)
    .when(leaveChat({ userId: 'ada', by: 'bob' }))
    .thenRejected('not-an-admin');
  given(chat, two)
    .when(leaveChat({ userId: 'eve', by: 'eve' }))
    .then([]);
  given(chat, [])
    .when(leaveChat({ userId: 'bob', by: 'bob' }))
    .thenRejected('chat-unknown');
});

test('participants post messages, and the author of a message in a public chat becomes a participant', () => {
  const post = (authorId: string) => postMessage({ messageId: 'm-1', authorId, content: 'Hi' });
  given(chat, two).when(post('bob')).then([bobs]);
  given(chat, two).when(post('eve')).thenRejected('not-a-participant');
  given(chat, open)
    .when(post('bob'))
    .then([participantJoined({ userId: 'bob', role: 'member' }), bobs]);
  given(chat, []).when(post('bob')).thenRejected('chat-unknown');
  given(chat, two).when(post('bot')).thenRejected('author-reserved');
  for (const stranger of ['constructor', '__proto__', 'toString']) {
    given(chat, two).when(post(stranger)).thenRejected('not-a-participant');
  }
});

test('a repeated message is a duplicate', () => {
  const again = (authorId: string) => postMessage({ messageId: 'm-1', authorId, content: 'Hi' });
  given(chat, said).when(again('bob')).then([]);
  given(chat, said).when(again('ada')).thenRejected('message-exists');
});

test('tags and the bot’s reply are recorded in the chat', () => {
  const tags = {
    messageId: 'm-1',
    authorId: 'bob',
    parserVersion: 1,
    commands: [{ type: 'ChangeStatusCommand' as const, status: 'Done' }],
    text: '',
    leftOut: 0,
  };
  given(chat, said)
    .when(recordTags(tags))
    .then([tagsParsed({ ...tags, chatId, timestamp })]);
  given(chat, []).when(recordTags(tags)).thenRejected('chat-unknown');
  const answer = { inReplyTo: 'm-1', content: '✅ Status changed to Done' };
  const messageId = idFromKey('given#id-0');
  given(chat, said)
    .when(postAnswer(answer))
    .then([messagePosted({ messageId, chatId, authorId: 'bot', timestamp, ...answer })]);
  given(chat, []).when(postAnswer(answer)).thenRejected('chat-unknown');
});

test('authors edit and delete for five minutes, admins at any time', () => {
  const edit = (by: string) => editMessage({ messageId: 'm-1', by, content: 'Hello' });
  const remove = (by: string) => deleteMessage({ messageId: 'm-1', by });
  const edited = (editedBy: string, at: string) =>
    messageEdited({ messageId: 'm-1', chatId, content: 'Hello', editedBy, timestamp: at });
  const later = new Date(nowMs + 5 * 60_000).toISOString();
  given(chat, said)
    .when(edit('bob'), minutes(5))
    .then([edited('bob', later)]);
  given(chat, said)
    .when(edit('bob'), { nowMs: nowMs + 5 * 60_000 + 1 })
    .thenRejected('too-late');
  given(chat, said)
    .when(remove('bob'))
    .then([messageDeleted({ messageId: 'm-1', chatId, deletedBy: 'bob', timestamp })]);
  given(chat, said).when(remove('bob'), minutes(6)).thenRejected('too-late');
  given(chat, said)
    .when(remove('ada'), minutes(600))
    .thenState(() => true);
  const third = [...said, participantJoined({ userId: 'eve', role: 'member' })];
  given(chat, third).when(edit('eve')).thenRejected('not-the-author');
  given(chat, third)
    .when(editMessage({ messageId: 'm-9', by: 'eve', content: 'x' }))
    .thenRejected('too-late');
  given(chat, []).when(edit('bob')).thenRejected('chat-unknown');
  const withDeletion = [
    ...said,
    messageDeleted({ messageId: 'm-1', chatId, deletedBy: 'bob', timestamp }),
  ];
  given(chat, withDeletion).when(edit('bob')).thenRejected('too-late');
});

test('a chat adopts the type and title of its task', () => {
  given(chat, created)
    .when(changeChatType({ type: 'bug', title: 'Crash' }))
    .then([chatTypeChanged({ type: 'bug', title: 'Crash' })]);
  given(chat, created)
    .when(changeChatType({ type: 'discussion', title: 'General' }))
    .then([]);
  given(chat, created)
    .when(changeChatTitle({ title: 'New' }))
    .then([chatTitleChanged({ title: 'New' })]);
  given(chat, created)
    .when(changeChatTitle({ title: 'General' }))
    .then([]);
  given(chat, [])
    .when(changeChatTitle({ title: 'New' }))
    .thenRejected('chat-unknown');
  given(chat, [])
    .when(changeChatType({ type: 'bug', title: 'Crash' }))
    .thenRejected('chat-unknown');
});

test('the state stays small with many messages', () => {
  const messages = Array.from({ length: 2_000 }, (_, at) =>
    messagePosted({
      messageId: `m-${at}`,
      chatId,
      authorId: 'bob',
      content: 'x'.repeat(100),
      timestamp: new Date(nowMs + at).toISOString(),
    }),
  );
  given(chat, [...two, ...messages]).thenState((state) => {
    assert.equal(state.recent.at(-1)?.messageId, 'm-1999');
    return JSON.stringify(state).length < 20_000;
  });
  const slow = messages
    .slice(0, 10)
    .map(({ payload }, at) =>
      messagePosted({ ...payload, timestamp: new Date(nowMs + at * 180_000).toISOString() }),
    );
  given(chat, [...two, ...slow]).thenState(({ recent }) => recent.length === 2);
});

function placed(event: NewEvent, occurredAt: string, revision: number): AggregateEvent {
  const envelope = createEnvelope(event, {
    tenant: 'test',
    aggregate: { bc: 'collab', type: 'chat', id: chatId },
  });
  const stream = buildStreamName('collab', 'chat', 1, 'test', chatId);
  return { ...envelope, occurredAt, stream, revision };
}

test('a chat is loaded from a snapshot instead of all its events', async () => {
  await using rig = await collabRig();
  for (let count = 0; count < 120; count += 1) await rig.send('c-1', says('ada', 'Hello'));
  const { state, revision } = await rig.platform.load(chat, { tenant, id: 'c-1' });
  const { snapshots } = rig.platform.engines;
  assert.ok(snapshots);
  const stream = buildStreamName('collab', 'chat', 1, tenant, 'c-1');
  const limit = AbortSignal.timeout(60_000);
  let snapshot = await snapshots.load(stream);
  while (snapshot === undefined) {
    limit.throwIfAborted();
    await new Promise((resolve) => void setImmediate(resolve));
    snapshot = await snapshots.load(stream);
  }
  assert.ok(snapshot.revision > revision - 100);
  assert.ok(JSON.stringify(snapshot.state).length < 20_000);
  assert.deepEqual(Object.keys(state.participants), ['ada', 'bob']);
});

test('a snapshot of code version 1 is ignored', async () => {
  await using rig = await collabRig();
  const stream = buildStreamName('collab', 'chat', 1, tenant, 'c-1');
  const [event] = await Array.fromAsync(
    rig.platform.engines.store.readStream(stream, { direction: 'backwards', limit: 1 }),
  );
  assert.ok(event);
  const { state } = await rig.platform.load(chat, { tenant, id: 'c-1' });
  const { eventId, revision, recordedAt: takenAt } = event;
  const old = { ...state, participants: { ada: 'admin', bob: 'member' } };
  const { store, snapshots } = rig.platform.engines;
  assert.ok(snapshots);
  await snapshots.save(stream, { revision, eventId, state: old, codeVersion: 1, takenAt });
  // Another process starts from the stored snapshot.
  await using chats = createCommandHandler({ store, snapshots }, chat);
  assert.deepEqual((await chats.load({ tenant, id: 'c-1' })).state, state);
});
