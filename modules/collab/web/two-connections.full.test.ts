// Two users change a status at the same time over separate connections: the order of the messages in the chat decides.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MessageDocument } from '../chat-read-models.ts';
import { openRig, type Person } from '../testing/web-rig.ts';

type OpenRig = Awaited<ReturnType<typeof openRig>>;

interface Page {
  readonly items: readonly MessageDocument[];
}

test('the later of two concurrent status changes wins, also after a replay', async () => {
  await using rig = await openRig();
  const [zoe, alex] = [await rig.person('zoe'), await rig.person('alex')];
  const w = await rig.workspace(zoe, alex);
  using screen = zoe.connect();
  const chats = await Promise.all(
    Array.from({ length: 12 }, () => rig.chat(zoe, w, { type: 'task' })),
  );
  for (const chatId of chats) screen.send({ type: 'subscribe.chat', chatId });
  for (const chatId of chats)
    await screen.receive('subscribed.chat', (message) => message['chatId'] === chatId);

  const say = (who: Person, chatId: string, status: string) =>
    who.send('POST', `/api/v1/chats/${chatId}/messages`, { content: `#status ${status}` });
  await Promise.all(
    chats.flatMap((chatId, at) => {
      const both = [() => say(zoe, chatId, 'In Progress'), () => say(alex, chatId, 'Done')];
      return (at % 2 === 0 ? both : both.toReversed()).map((each) => each());
    }),
  );

  /** The status in the last message, after the bot has replied to both. */
  const lastStatusOf = async (chatId: string): Promise<string | undefined> => {
    const { body } = await zoe.get<Page>(`/api/v1/chats/${chatId}/messages?order=asc`);
    const said = body.items.filter(({ authorId }) => authorId !== 'bot');
    const last = said.at(-1);
    await screen.receive('chat.message.posted', ({ message }) => {
      const { inReplyTo } = message as MessageDocument;
      return inReplyTo !== undefined && inReplyTo === last?.messageId;
    });
    assert.equal(said.length, 2);
    return last?.content.replace('#status ', '');
  };
  const statuses = async () =>
    Promise.all(
      chats.map(async (chatId) => (await zoe.get(`/api/v1/tasks/${chatId}`)).body['status']),
    );
  const wanted = await Promise.all(chats.map(lastStatusOf));
  await settled(rig);
  assert.deepEqual(await statuses(), wanted);

  const before = await history(rig);
  const { subscriptions } = rig.platform;
  for (const { name } of rig.platform.modules.reactors) {
    await subscriptions.pause(name);
    await subscriptions.reset(name, { by: 'test' });
    await subscriptions.resume(name);
  }
  await settled(rig);
  assert.deepEqual(await history(rig), before);
  assert.deepEqual(await statuses(), wanted);
});

/** Notifications are not compared. */
async function history({ platform }: OpenRig): Promise<readonly string[]> {
  const events = await platform.engines.store.readAll().toArray();
  return events.flatMap(({ type, eventId }) =>
    type.startsWith('notification.') ? [] : [`${type} ${eventId}`],
  );
}

/** Waits until reactors and projections have caught up. */
async function settled({ platform }: OpenRig): Promise<void> {
  const { reactors, projections } = platform.modules;
  for (;;) {
    const head = await platform.engines.store.head();
    for (const { name } of reactors) {
      while ((await platform.subscriptions.lag(name)).behind > 0) await platform.clock.sleep(5);
    }
    for (const each of projections) await platform.waitFor(each, head);
    if ((await platform.engines.store.head()) === head) return;
  }
}
