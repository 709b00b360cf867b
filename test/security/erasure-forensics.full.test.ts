// After `forget`, no file of a product contains the data or the key of the person, while it runs and after it stopped.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { collab } from '../../modules/collab/index.ts';
import { createChat, includeInChat, postMessage } from '../../modules/collab/chat-events.ts';
import { chat as chatAggregate } from '../../modules/collab/chat.ts';
import { chatProjection, messageProjection } from '../../modules/collab/chat-read-models.ts';
import { taskProjection } from '../../modules/collab/tasks/task-read-models.ts';
import { task as chatTask } from '../../modules/collab/tasks/task.ts';
import { ensureUser, userProjection, userSubject } from '../../modules/collab/user.ts';
import { addMember, createWorkspace } from '../../modules/collab/workspace-events.ts';
import { archiveStream } from '../../src/bus/archive.ts';
import { fileColdStorage } from '../../src/bus/file-cold-storage.ts';
import { Terminal } from '../../src/foundation/handler-outcome.ts';
import { createPlatform, type Platform } from '../../src/platform/create-platform.ts';
import { defineModule } from '../../src/platform/modules/platform-module.ts';
import {
  projection,
  readModel,
  type DocumentQueries,
  type Projection,
} from '../../src/projections/index.ts';
import { task } from '../../src/tasks/task-definition.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { fileAttachments } from '../../src/topics/file-attachments.ts';
import { notifyLimits } from '../../src/topics/visitor-limits.ts';
import { subscription } from '../../src/subscriptions/subscription.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { newEvent } from '../../src/testing/conformance/store/fixture.ts';
import { classifiedFile } from './erasure-classified.ts';
import { filesOf, filesWith } from './forensic-files.ts';

const marker = 'Zelda-7731';
const stream = 'crm.contact.v1-core-c1';
const type = 'contact.added.v1';

interface Contact {
  readonly name: string;
}

const contacts = projection({
  name: 'sub:crm:contacts:v1',
  readModel: readModel<Contact>({
    bc: 'crm',
    aggregate: 'contact',
    version: 1,
    indexes: { name: ({ name }) => name },
  }),
  on: { [type]: (_before, { payload }: { readonly payload: Contact }) => ({ name: payload.name }) },
});

/** Copies personal data to everything that a module can write. */
const crm = defineModule({
  name: 'crm',
  projections: [contacts],
  subscriptions: [
    subscription({
      name: 'sub:crm:broken:v1',
      filter: { types: [type] },
      handler: ({ payload }) => {
        throw new Terminal(`cannot handle ${JSON.stringify(payload)}`);
      },
    }),
  ],
  outbox: ['sent', 'late'].map((kind) => ({
    name: `sub:crm:${kind}:v1`,
    filter: { types: [type], category: 'crm.contact.v1' },
    mapper: {
      map: ({ payload }: { readonly payload: unknown }) => ({
        integrationType: `post:${kind}`,
        eventType: type,
        payload: payload as Record<string, unknown>,
        headers: { about: JSON.stringify(payload) },
        ...(kind === 'late' ? { dueAt: new Date(Date.now() + 3_600_000) } : {}),
      }),
    },
  })),
  destinations: { post: async () => undefined },
  tasks: [
    task('contact-mail', async (ctx) => {
      const found = await ctx.step('look', async () => ({ found: ctx.payload }));
      await ctx.waitForEvent('reply');
      return found;
    }),
  ],
});

function keysIn(folder: string): Uint8Array[] {
  using database = new DatabaseSync(join(folder, 'events.subject-keys.db'), { readOnly: true });
  const rows = database.prepare('select key from subject_keys where key is not null').all();
  return rows.map(({ key }) => key as Uint8Array);
}

/** Writes data of one person to events, documents, outbox messages and dead letters. */
async function writePersonalData(platform: Platform): Promise<void> {
  const { engines, load } = platform;
  const { store, outbox, subscriptions } = engines;
  assert.ok(outbox !== undefined);
  const headers = { dataSubject: 'zelda' };
  const event = newEvent({ type, payload: { name: marker }, headers });
  const { position } = await store.append(stream, [event]);
  await platform.waitFor(contacts, position);
  const send = (...asked: Parameters<Platform['handle']>) => platform.handle(...asked);
  const profile = { email: `${marker}@example.org`, displayName: `${marker} Fitzgerald` };
  await ensureUser({ load, send }, { tenant: 'core', principal: 'user-1', ...profile });
  await platform.waitFor(userProjection, await store.head());
  await eventually(async () => (await outbox.counts()).SENT === 1);
  await eventually(async () => (await outbox.counts()).PENDING === 1);
  await eventually(async () => (await subscriptions.deadLetters.count({})) === 1);
}

/** A chat message of the user, whose text a tag makes the parser repeat. */
async function writeChat(platform: Platform): Promise<void> {
  const send = async (id: string, command: Parameters<Platform['handle']>[0]['command']) =>
    platform.handle({ tenant: 'core', id, command, user: { id: 'user-1' } });
  const by = { createdBy: 'user-1' };
  await send('w-1', createWorkspace({ name: 'Mill', ...by, username: 'user-1' }));
  const chat = { type: 'task', title: 'Plan', workspaceId: 'w-1', isPublic: true } as const;
  await send('chat-1', createChat({ ...chat, ...by, participants: [] }));
  const titled = { ...chat, type: 'bug', title: `Call ${marker}` } as const;
  await send('chat-2', createChat({ ...titled, ...by, participants: ['user-2'] }));
  await send(
    'w-1',
    addMember({ userId: 'user-2', username: 'user-2', role: 'member', by: 'user-1' }),
  );
  await send('chat-1', includeInChat({ userId: 'user-2' }));
  const content = `my name is ${marker}\n#title Visit ${marker}\n#assignee @${marker}`;
  await send('chat-1', postMessage({ messageId: 'm-1', authorId: 'user-1', content }));
  await eventually(async () => {
    const [message] = await messagesOf(platform);
    return message?.document !== null && message !== undefined;
  });
  await eventually(async () => {
    const created = await documentOf(platform, chatProjection, 'chat-1');
    const other = await documentOf(platform, taskProjection, 'chat-2');
    return created?.title === `Visit ${marker}` && other?.title === titled.title;
  });
  // The message, its tags, the title of the task and of the chat, the reply of the bot, the notification of the other user.
  await eventually(async () => {
    const types = ['chat.message-posted.v1', 'notification.created.v1'];
    const events = await platform.engines.store.readAll({ filter: { types } }).toArray();
    return events.filter(({ payload }) => JSON.stringify(payload).includes(marker)).length === 3;
  });
}

async function documentOf<Document extends object>(
  platform: Platform,
  { readModel: model }: Projection<Document>,
  id: string,
): Promise<Document | undefined> {
  const documents = platform.documents(model) as DocumentQueries<Document>;
  return (await documents.get('core', id))?.document;
}

const messagesOf = (platform: Platform) =>
  platform.engines.readModels.load(messageProjection.readModel, [{ tenant: 'core', id: 'm-1' }]);

/** A job with a step result, and a message that is archived, dead-lettered and still in its stream. */
async function writeCopies(platform: Platform, folder: string): Promise<string> {
  const about = { dataSubject: 'zelda' };
  const payload = { name: marker };
  const tasks = await platform.tasks();
  const { id } = await tasks.enqueue({ type: 'contact-mail', payload, labels: about });
  await eventually(async () => (await tasks.get(id))?.state === 'waiting');
  const bus = await platform.engines.bus();
  const subject = 'crm.contacts.added';
  const group = await bus.group({ group: 'mails', subject });
  await bus.publish({ subject, payload, headers: about });
  const [message] = await group.fetch({ waitMs: 0 });
  await message?.term(`cannot mail ${marker}`);
  const before = new Date(Date.now() + 60_000);
  await archiveStream(bus, fileColdStorage(join(folder, 'archive')), subject, { before });
  await bus.publish({ subject, payload, headers: about });
  const names = await Array.fromAsync(bus.read(subject), (each) => each.payload);
  assert.deepEqual(names, [payload]);
  assert.equal((await bus.deadLetters('mails')).length, 1);
  assert.deepEqual((await tasks.get(id))?.steps[0]?.result, { found: payload });
  return id;
}

/** The file of a visitor without credentials is not linked to a person: it is deleted when it expires. */
async function writeAttachment(folder: string): Promise<() => Promise<number>> {
  const clock = fakeClock();
  const attachments = fileAttachments(join(folder, 'attachments'), clock);
  const expiresAtMs = clock.now() + notifyLimits.attachmentExpiryMs;
  const facts = { name: `${marker}.txt`, type: 'text/plain', owner: 'any', expiresAtMs };
  const content = (async function* () {
    yield Buffer.from(marker);
  })();
  await attachments.write('AAAAAAAAAAAA', content, { facts, bytesMax: 1_000 });
  return async () => {
    await clock.advance(notifyLimits.attachmentExpiryMs);
    return attachments.sweep();
  };
}

test('after forget, no file contains the data or the key of the person', async () => {
  const root = mkdtempSync(join(tmpdir(), 'millrace-forensics-'));
  const folder = join(root, '.millrace');
  const engines = { store: `sqlite:${join(folder, 'events.db')}` };
  let keys: Uint8Array[] = [];
  try {
    {
      await using platform = await createPlatform({ engines, modules: [collab(), crm] });
      await platform.start();
      await writePersonalData(platform);
      await writeChat(platform);
      const job = await writeCopies(platform, folder);
      const expire = await writeAttachment(folder);
      keys = keysIn(folder);
      assert.equal(keys.length, 2);
      const tasks = await platform.tasks();
      assert.notDeepEqual(filesWith(folder, marker), []);
      const { store, readModels, outbox } = platform.engines;
      assert.ok(outbox !== undefined);
      await store.forget('zelda');
      await store.forget(userSubject('core', 'user-1'));
      for (const key of keys) assert.deepEqual(filesWith(folder, key), []);
      const head = await store.head();
      await platform.waitFor(contacts, head);
      await platform.waitFor(userProjection, head);
      await eventually(async () => {
        const messages = await outbox.list({});
        return messages.length === 2 && !JSON.stringify(messages).includes(marker);
      });
      const [contact, user] = await Promise.all([
        readModels.load(contacts.readModel, [{ tenant: 'core', id: 'c1' }]),
        readModels.load(userProjection.readModel, [{ tenant: 'core', id: 'user-1' }]),
      ]);
      assert.deepEqual([contact[0]?.document, user[0]?.document], [null, null]);
      await platform.waitFor(messageProjection, head);
      assert.equal((await messagesOf(platform))[0]?.document, null);
      await Promise.all([
        platform.waitFor(chatProjection, head),
        platform.waitFor(taskProjection, head),
      ]);
      const chat = await documentOf(platform, chatProjection, 'chat-1');
      const board = await documentOf(platform, taskProjection, 'chat-1');
      assert.deepEqual([chat?.title, board?.title, board?.type], ['(erased)', '(erased)', 'task']);
      const { state } = await platform.load(chatTask, { tenant: 'core', id: 'chat-1' });
      assert.deepEqual([state.title, state.type], ['(erased)', 'task']);
      // Everything but the title stays of a chat whose creator was forgotten.
      const other = await documentOf(platform, chatProjection, 'chat-2');
      const users = other?.participants.map(({ userId }) => userId);
      assert.deepEqual(
        [other?.title, other?.type, users],
        ['(erased)', 'bug', ['user-1', 'user-2']],
      );
      assert.equal((await documentOf(platform, taskProjection, 'chat-2'))?.title, '(erased)');
      const room = await platform.load(chatAggregate, { tenant: 'core', id: 'chat-2' });
      assert.deepEqual([room.state.workspaceId, room.state.title], ['w-1', undefined]);
      const bus = await platform.engines.bus();
      assert.deepEqual(await Array.fromAsync(bus.read('crm.contacts.added')), []);
      assert.deepEqual(await bus.deadLetters('mails'), []);
      await tasks.sendEvent(job, { name: 'reply' });
      await eventually(async () => (await tasks.get(job))?.state === 'failed');
      assert.doesNotMatch(JSON.stringify(await tasks.get(job)), /Zelda/);
      assert.equal(await expire(), 1);
      await eventually(async () => filesWith(folder, marker).length === 0);
      for (const file of filesOf(folder)) {
        assert.ok(classifiedFile(relative(folder, file)), file);
      }
    }
    for (const bytes of [marker, ...keys]) assert.deepEqual(filesWith(folder, bytes), []);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
