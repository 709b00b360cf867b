// The notification example of the naming document (8.3): one event with the source of its sender, one post to Slack.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { buildIdempotencyKey, defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { slackDestination } from '../../src/destinations/slack/index.ts';
import { createPlatform, defineModule } from '../../src/platform/index.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { startFakeSlack } from '../../src/testing/index.ts';

const content = z.object({ channel: z.string(), text: z.string() });
const requested = defineEvent('notification.requested.v1', content);
const request = defineCommand('notification.request', content);
const notification = defineAggregate({
  bc: 'notifications',
  name: 'notification',
  version: 1,
  events: [requested],
  commands: [request],
  initial: {},
  evolve: { 'notification.requested.v1': (state) => state },
  decide: { 'notification.request': (payload) => requested(payload) },
});

test('notification.requested.v1 of the MakerModule has its source and its key, and is posted to Slack once', async () => {
  await using slack = await startFakeSlack();
  await using destination = await slackDestination({
    token: 'xoxb-test',
    apiUrl: slack.apiUrl,
    compose: ({ payload }) => ({
      channel: String(payload['channel']),
      text: String(payload['text']),
    }),
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [
      defineModule({
        name: 'notifications',
        aggregates: [notification],
        outbox: [
          {
            name: 'sub:notify:slack:v1',
            filter: { types: ['notification.requested.v1'] },
            mapper: {
              map: ({ type, payload }) => ({
                integrationType: 'slack:makers',
                eventType: type,
                payload: payload as z.infer<typeof content>,
              }),
            },
          },
        ],
        destinations: { slack: destination },
      }),
    ],
  });
  await platform.start();
  const idempotencyKey = buildIdempotencyKey({
    tenant: 'core',
    service: 'notify',
    operation: 'sendSlack',
    naturalKey: 'maker-test1',
  });
  assert.equal(idempotencyKey, 'core|notify|sendSlack|maker-test1');
  const send = () =>
    platform.handle({
      tenant: 'core',
      id: 'maker-test1',
      command: request({ channel: 'C0MAKERS', text: 'Order 7 waits for a maker' }),
      idempotencyKey,
      headers: { source: 'MakerModule' },
    });
  assert.deepEqual([(await send()).isDuplicate, (await send()).isDuplicate], [false, true]);
  const { store, outbox } = platform.engines;
  const events = await store.readStream('notifications.notification.v1-core-maker-test1').toArray();
  assert.deepEqual(
    events.map(({ type, idempotencyKey: key, headers }) => [type, key, headers?.['source']]),
    [['notification.requested.v1', idempotencyKey, 'MakerModule']],
  );
  await eventually('the message is sent', async () => (await outbox?.counts())?.SENT === 1);
  assert.deepEqual(
    slack.messages.map(({ channel, text }) => [channel, text]),
    [['C0MAKERS', 'Order 7 waits for a maker']],
  );
});
