// `millrace outbox run` as a process between a store and a webhook receiver.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHttpReceiver } from '../../src/testing/index.ts';
import {
  createWorkspace,
  newEvents,
  openStore,
  soakMinutes,
  streamName,
  until,
  type EngineName,
} from '../store/rig.ts';
import { openLedger } from './open-ledger.ts';
import { runOutbox, writeConfig } from './run-process.ts';

export function outboxRunCases(
  engine: EngineName,
  newUrl: (folder: string) => Promise<string>,
): void {
  test(`appended events reach the receiver, and SIGTERM waits for the running delivery, on ${engine}`, async () => {
    await using workspace = await createWorkspace();
    const url = await newUrl(workspace.folder);
    await using store = await openStore(engine, url);
    const arrived = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    await using receiver = await startHttpReceiver({
      answer({ body }, response) {
        const isHeld = body.includes('held-0');
        if (isHeld) arrived.resolve();
        const released = isHeld ? release.promise : Promise.resolve();
        void released.then(() => response.writeHead(204).end());
      },
    });
    await writeConfig(workspace.folder, receiver.url);
    await store.append(streamName(1), newEvents('before', 3));
    const env = {
      MILLRACE_STORE: url,
      OUTBOX_MAX_ATTEMPTS: '3',
      // The held request must not time out on a busy machine.
      WEBHOOK_TIMEOUT_MS: '25000',
    };
    const running = runOutbox(workspace.folder, env, '--port', '0');
    const { url: own } = await running.said('outbox started');
    await until('the existing events are delivered', () => receiver.requests.length === 3);
    await store.append(streamName(2), newEvents('after', 3));
    await until('the new events are delivered', () => receiver.requests.length === 6);
    const [first] = receiver.requests;
    assert.equal(first?.headers['x-tenant-id'], 'core');
    assert.match(String(first?.headers['x-correlation-id']), /^before-/);
    assert.match(String(first?.headers['idempotency-key']), /^before-/);

    const get = async (path: string): Promise<string> =>
      (await fetch(`${String(own)}${path}`)).text();
    assert.deepEqual(JSON.parse(await get('/health/ready')), {
      status: 'ok',
      checks: { store: { status: 'ok' }, outbox: { status: 'ok' } },
    });
    // A delivery is counted when its outcome is stored, after the receiver has it.
    await until('the deliveries are counted', async () =>
      /^outbox_sent_total\{.*\} 6$/m.test(await get('/metrics')),
    );
    assert.match(await get('/metrics'), /^outbox_pending_total 0$/m);

    await store.append(streamName(3), newEvents('held', 1));
    await arrived.promise;
    running.kill('SIGTERM');
    await running.said('outbox stopping');
    release.resolve();
    const { code, stderr } = await running.ended;
    assert.deepEqual([code, stderr], [0, '']);
    await using ledger = await openLedger({ engine, url });
    const { SENT, CLAIMED, PENDING, FAILED, DEAD } = await ledger.counts();
    assert.deepEqual([SENT, CLAIMED, PENDING, FAILED, DEAD], [7, 0, 0, 0, 0]);
    for (const { maxAttempts } of await ledger.list({})) assert.equal(maxAttempts, 3);
    const phases = running.lines.filter(({ operation }) => operation === 'OUTBOX_DELIVER');
    assert.deepEqual(new Set(phases.map(({ phase }) => phase)), new Set(['SENT']));
  });

  // In `npm test`, kill-postgres.servers.test.ts kills the dispatchers of PostgreSQL.
  if (engine === 'postgres' && soakMinutes === 0) return;
  test(`a message that a killed process was sending is sent again with the same key, on ${engine}`, async () => {
    await using workspace = await createWorkspace();
    const url = await newUrl(workspace.folder);
    await using store = await openStore(engine, url);
    let isResponding = false;
    await using receiver = await startHttpReceiver({
      answer: (_request, response) => void (isResponding && response.writeHead(204).end()),
    });
    await writeConfig(workspace.folder, receiver.url, { leaseMs: 2_000 });
    await store.append(streamName(1), newEvents('e', 1));
    const first = runOutbox(workspace.folder, { MILLRACE_STORE: url });
    await until('the message is being sent', () => receiver.requests.length === 1);
    first.kill('SIGKILL');
    await first.ended;
    isResponding = true;
    const second = runOutbox(workspace.folder, { MILLRACE_STORE: url });
    await using ledger = await openLedger({ engine, url });
    await until('the message is sent', async () => (await ledger.counts()).SENT === 1);
    second.kill('SIGINT');
    assert.deepEqual(await second.ended, { code: 0, stderr: '' });
    const keys = receiver.requests.map(({ headers }) => headers['idempotency-key']);
    assert.deepEqual(new Set(keys), new Set(['e-0']));
    assert.ok(keys.length > 1);
  });
}
