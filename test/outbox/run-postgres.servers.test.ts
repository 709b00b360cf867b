import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { startStandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import {
  deposited,
  envelopeEvent,
  metadataEvent,
  plainEvent,
  streamOf,
} from '../kurrent/event-forms.ts';
import { event, kurrentClient } from '../kurrent/official-clients.ts';
import { createWorkspace } from '../store/rig.ts';
import { outboxRunCases } from './run-cases.ts';
import { runOutbox, writeConfig } from './run-process.ts';

outboxRunCases('postgres', async () => (await sharedPostgres()).url);

test('events of EventStoreDB in every form become rows, and --drain fails if one was dead-lettered', async () => {
  await using workspace = await createWorkspace();
  await using server = await startStandIn({ preset: '24.10' });
  await using client = (await kurrentClient()).connect(server.url);
  await using receiver = await startHttpReceiver();
  const { url } = await sharedPostgres();
  await writeConfig(workspace.folder, receiver.url, { bc: 'banking' });
  const env = {
    ESDB_CONNECTION_STRING: server.url.replace('kurrentdb:', 'esdb:'),
    ESDB_SUBSCRIPTION_PREFIX: 'account.',
    MILLRACE_OUTBOX: url,
  };
  await client.append(streamOf('a'), envelopeEvent('a', 1));
  await client.append(streamOf('b'), metadataEvent('b', 2));
  const plain = plainEvent(3);
  await client.append(streamOf('c'), plain);

  const first = runOutbox(workspace.folder, env, '--drain');
  assert.deepEqual(await first.ended, { code: 0, stderr: '' });
  const { SENT } = await first.said('outbox drained');
  assert.equal(SENT, 3);
  const rows = new pg.Client({ connectionString: url });
  await rows.connect();
  try {
    const { rows: found } = await rows.query(
      `select source_stream_id as stream, tenant_id, user_id, correlation_id, payload::jsonb as payload, status
       from core_outbox.integration_outbox order by source_stream_id`,
    );
    assert.deepEqual(found, [
      {
        stream: streamOf('a'),
        tenant_id: 'core',
        user_id: 'u-1',
        correlation_id: 'flow-a',
        payload: { amount: 1 },
        status: 'SENT',
      },
      {
        stream: streamOf('b'),
        tenant_id: 'core',
        user_id: 'u-2',
        correlation_id: 'flow-b',
        payload: { amount: 2 },
        status: 'SENT',
      },
      {
        stream: streamOf('c'),
        tenant_id: null,
        user_id: null,
        correlation_id: plain.id,
        payload: { amount: 3 },
        status: 'SENT',
      },
    ]);
  } finally {
    await rows.end();
  }

  // A message must have an object as its payload.
  await client.append(streamOf('d'), event({ type: deposited, data: [1] as never }));
  await client.append(streamOf('e'), metadataEvent('e', 5, 'other'));
  const second = runOutbox(workspace.folder, env, '--drain');
  const { code } = await second.ended;
  assert.equal(code, 1);
  const messages = second.lines.map(({ message }) => String(message));
  assert.ok(!messages.includes('outbox drained'));
  const { deadLetteredEvents, SENT: stillSent } = await second.said(
    'outbox not drained: events were dead-lettered, see millrace dlq list',
  );
  assert.deepEqual([deadLetteredEvents, stillSent], [2, 3]);
  assert.equal(receiver.requests.length, 3);
});
