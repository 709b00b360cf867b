import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLifecycle } from '../../../foundation/lifecycle.ts';
import { stressLifecycle } from '../../../testing/lifecycle-stress.ts';
import { sharedNats } from '../../../testing/servers/shared-servers.ts';
import { openNats, type NatsEngine } from '../open-nats.ts';

const { url, prefix } = await sharedNats();

function sockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

test('leases in NATS leave no connection open, whatever the order of opening and closing', async () => {
  const before = sockets();
  await stressLifecycle({
    create() {
      let opened: NatsEngine | undefined;
      return createLifecycle({
        async start() {
          opened = await openNats(url, { prefix: `${prefix}-stress` });
          await opened.leases.list('sub:stress:test:v1');
        },
        async stop() {
          await opened?.[Symbol.asyncDispose]();
          opened = undefined;
        },
      });
    },
    rounds: 40,
  });
  await backTo(before);
});

test('a bus on NATS with a consumer and a reader leaves no connection open, whatever the order', async () => {
  const before = sockets();
  await stressLifecycle({
    create() {
      let opened: NatsEngine | undefined;
      return createLifecycle({
        async start() {
          opened = await openNats(url, { prefix: `${prefix}-bus` });
          await opened.bus.consume({ group: 'workers', subject: 'gbe.x' }, () => undefined);
          await opened.bus.subscribe('gbe.>');
        },
        async stop() {
          await opened?.[Symbol.asyncDispose]();
          opened = undefined;
        },
      });
    },
    rounds: 20,
  });
  await backTo(before);
});

/** The server reports a closed socket a moment later. */
async function backTo(before: number): Promise<void> {
  for (let round = 0; round < 6_000 && sockets() > before; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.ok(sockets() <= before, `${sockets()} sockets, ${before} before`);
}
