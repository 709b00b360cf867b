import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCommandHandler } from 'millrace/aggregates';
import { buildStreamName } from 'millrace/contracts';
import { collabRig, says, tenant } from './collab-rig.test.ts';
import { chat } from './index.ts';

test('a chat is loaded from a snapshot, not from all that was ever said', async () => {
  await using rig = await collabRig();
  for (let count = 0; count < 120; count += 1) await rig.send('c-1', says('ada', 'Hello'));
  const { state, revision } = await rig.platform.load(chat, { tenant, id: 'c-1' });
  const { snapshots } = rig.platform.engines.aggregates;
  const stream = buildStreamName('collab', 'chat', 1, tenant, 'c-1');
  const limit = AbortSignal.timeout(60_000);
  let kept = await snapshots.load(stream);
  while (kept === undefined) {
    limit.throwIfAborted();
    await new Promise((resolve) => void setImmediate(resolve));
    kept = await snapshots.load(stream);
  }
  assert.ok(kept.revision > revision - 100);
  assert.ok(JSON.stringify(kept.state).length < 20_000);
  assert.deepEqual(Object.keys(state.participants), ['ada', 'bob']);
});

test('a snapshot from before it was kept who came when is left aside', async () => {
  await using rig = await collabRig();
  const stream = buildStreamName('collab', 'chat', 1, tenant, 'c-1');
  const [event] = await Array.fromAsync(
    rig.platform.engines.store.readStream(stream, { direction: 'backwards', limit: 1 }),
  );
  assert.ok(event);
  const { state } = await rig.platform.load(chat, { tenant, id: 'c-1' });
  const { eventId, revision, recordedAt: takenAt } = event;
  const old = { ...state, participants: { ada: 'admin', bob: 'member' } };
  const { snapshots } = rig.platform.engines.aggregates;
  await snapshots.save(stream, { revision, eventId, state: old, codeVersion: 1, takenAt });
  // Another process remembers nothing: it begins with what is kept.
  await using chats = createCommandHandler(rig.platform.engines.store, chat, { snapshots });
  assert.deepEqual((await chats.load({ tenant, id: 'c-1' })).state, state);
});
