import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRequest } from './message-request-events.ts';
import { slackRig } from './slack-rig.test.ts';

const paid = {
  workspaceCode: 'acme',
  templateCode: 'paid',
  data: { order: { id: 'o<1>' }, by: 'Ada & Co' },
};

test('a request is posted once, filled and escaped, and its snapshot says where', async () => {
  await using rig = await slackRig();
  await rig.send('r-1', createRequest({ ...paid, channelCode: 'orders', recipient: 'U0BOB' }));
  const document = await rig.inStatus('r-1', 'sent', 'failed');
  const [message, ...more] = rig.slack.messages;
  assert.equal(more.length, 0);
  assert.equal(message?.text, 'Order o&lt;1&gt; is paid by Ada &amp; Co');
  assert.equal(message?.channel, 'C0ORDERS');
  assert.deepEqual(message?.metadata?.event_payload, { id: 'core/r-1' });
  const { status, channelId, ts, attempts, round } = document;
  assert.deepEqual(
    { status, channelId, ts, attempts, round },
    {
      status: 'sent',
      channelId: 'C0ORDERS',
      ts: message?.ts,
      attempts: 1,
      round: 1,
    },
  );
});
