import assert from 'node:assert/strict';
import { test } from 'node:test';
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
