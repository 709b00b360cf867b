import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { hasCode } from '../../foundation/error.ts';
import { openRole } from './open-engines.ts';

/** Accepts connections and never responds, like a server that hangs. */
const sockets = new Set<Socket>();
const silent = createServer((socket) => {
  sockets.add(socket);
  socket.on('error', () => socket.destroy());
});
silent.listen(0, '127.0.0.1');
await once(silent, 'listening');
const address = silent.address();
const silentPort = typeof address === 'object' ? (address?.port ?? 0) : 0;

after(() => {
  for (const socket of sockets) socket.destroy();
  silent.close();
});

const engines = [
  ['postgres', 'store', '/shop'],
  ['mongodb', 'store', '/shop'],
  ['kurrentdb', 'store', '?tls=false'],
  ['redis', 'bus', ''],
  ['redis+cluster', 'bus', ''],
  ['nats', 'bus', ''],
] as const;

const cases = engines.flatMap(([scheme, role, path]) =>
  (
    [
      ['refuses connections', 1],
      ['does not respond', silentPort],
    ] as const
  ).map(([what, port]) => ({
    title: `${scheme} that ${what}`,
    url: `${scheme}://app:hunter2@127.0.0.1:${port}${path}`,
    role,
  })),
);

// Drivers limit the time to connect to 5 s. The limit of the test fails one that waits on.
test(
  'opening an unreachable engine fails, without its password',
  { concurrency: true },
  async (t) => {
    await Promise.all(
      cases.map(({ title, url, role }) =>
        t.test(title, { timeout: 30_000 }, async () => {
          await assert.rejects(openRole(url, role), (error) => {
            assert.ok(hasCode(error, 'STORE_UNAVAILABLE'), String(error));
            assert.equal(error.retryable, true);
            assert.match(error.message, /refused|closed|timeout|timed out|did not/i);
            assert.doesNotMatch(`${error.message} ${JSON.stringify(error)}`, /hunter2/);
            return true;
          });
        }),
      ),
    );
  },
);
