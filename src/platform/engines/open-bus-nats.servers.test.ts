import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { openBus } from './open-bus.ts';
import { sharedNats } from '../../testing/servers/shared-servers.ts';

test('opens a bus by the URL of a NATS server, and rejects an unknown URL', async () => {
  const { url, prefix } = await sharedNats();
  await using bus = await openBus(url);
  const subject = `${prefix}.events.api.error`;
  await bus.publish({ subject, payload: { n: 1 } });
  const [message] = await Array.fromAsync(bus.read(subject));
  assert.deepEqual(message?.payload, { n: 1 });
  await assert.rejects(openBus('http://h'), (error) => hasCode(error, 'CONFIG_INVALID'));
});
