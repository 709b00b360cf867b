import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChat } from './chat-events.ts';
import { chat } from './chat.ts';
import { collabRig, says, tenant } from './testing/collab-rig.ts';
import { userSubject } from './user.ts';

test('each event with a text of a user is encrypted with the key of the author, and forgotten with the author', async () => {
  await using rig = await collabRig('discussion');
  const by = { createdBy: 'ada', participants: ['bob'] };
  const subject = { workspaceId: 'w-1', type: 'bug', title: 'Text 1', isPublic: false } as const;
  await rig.send('c-2', createChat({ ...subject, ...by }));
  await rig.settle();
  await rig.send('c-2', says('bob', 'Text 2\n#title Text 3\n#task Text 4'));
  await rig.send('c-1', says('bob', '#task Text 5'));
  await rig.settle();
  const events = await rig.events();
  const personal = events.filter(({ payload }) => JSON.stringify(payload).includes('Text '));
  const found = personal.map(({ type, aggregate, headers }) => {
    assert.doesNotMatch(JSON.stringify(headers), /Text /, type);
    return [aggregate.id.startsWith('c-') ? aggregate.id : '', type, headers?.['dataSubject']];
  });
  const [ada, bob] = [userSubject(tenant, 'ada'), userSubject(tenant, 'bob')];
  assert.deepEqual(found.map(String).toSorted(), [
    `,notification.created.v1,${bob}`,
    `c-1,chat.message-posted.v1,${bob}`,
    `c-1,chat.tags-parsed.v1,${bob}`,
    `c-1,chat.type-changed.v1,${bob}`,
    `c-1,task.created.v1,${bob}`,
    `c-2,chat.created.v1,${ada}`,
    // The message, and the reply of the bot.
    `c-2,chat.message-posted.v1,${bob}`,
    `c-2,chat.message-posted.v1,${bob}`,
    `c-2,chat.tags-parsed.v1,${bob}`,
    `c-2,chat.title-changed.v1,${bob}`,
    `c-2,chat.type-changed.v1,${bob}`,
    `c-2,task.created.v1,${ada}`,
    `c-2,task.tags-answered.v1,${bob}`,
    `c-2,task.title-changed.v1,${bob}`,
    `c-2,task.type-changed.v1,${bob}`,
  ]);

  const { state } = await rig.platform.load(chat, { tenant, id: 'c-2' });
  for (const user of ['ada', 'bob']) {
    await rig.platform.engines.store.forget(userSubject(tenant, user));
  }
  assert.doesNotMatch(JSON.stringify(await rig.events()), /Text /);
  assert.doesNotMatch(JSON.stringify(state), /Text /, 'a snapshot has no text');
});
