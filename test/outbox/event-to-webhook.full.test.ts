// From an event through the ledger and a signed webhook to one effect at the receiver.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { openSqlite, sqliteInbox } from '../../src/engines/sqlite/index.ts';
import { verifyWebhook, webhookDestination } from '../../src/destinations/webhook/index.ts';
import { createDelivery } from '../../src/delivery/index.ts';
import { createOutboxDispatcher, startOutboxProjector } from '../../src/outbox/index.ts';
import { startHttpReceiver } from '../../src/testing/index.ts';
import { createWorkspace, newEvent, streamName, until } from '../store/rig.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('each event has one effect at a receiver that fails, drops connections and deduplicates', async () => {
  await using workspace = await createWorkspace();
  await using db = await openSqlite(join(workspace.folder, 'events.db'));

  const effects = new DatabaseSync(join(workspace.folder, 'receiver.db'));
  effects.exec('create table effects (event text)');
  const insert = effects.prepare('insert into effects values (?)');
  const inbox = sqliteInbox({ consumer: 'payments' });
  inbox.migrate(effects);
  let requests = 0;
  await using receiver = await startHttpReceiver({
    answer({ body, headers }, response) {
      requests += 1;
      const { id } = verifyWebhook({ body, headers, secrets: [secret] });
      if (requests % 3 === 0) {
        response.writeHead(503, { 'retry-after': '0' }).end();
        return;
      }
      inbox.once(effects, id, () => insert.run(body));
      // The message is accepted, but the sender does not learn it.
      if (requests % 5 === 0) response.destroy();
      else response.writeHead(204).end();
    },
  });

  await using webhook = webhookDestination({
    endpoint: { id: 'partner', url: receiver.url, secrets: [secret] },
    allowAddresses: ['127.0.0.1/32'],
    allowHttp: true,
  });
  const { deliver } = createDelivery({ destinations: { webhook } });
  const events = Array.from({ length: 40 }, (_, at) => newEvent(`e${at}`, { payload: { at } }));
  await db.store.append(streamName(1), events);
  await using projector = await startOutboxProjector(db, {
    name: 'sub:rig:outbox:v1',
    mapper: {
      map: ({ type, payload }) => ({
        integrationType: 'webhook:partner',
        eventType: type,
        payload: payload as { readonly at: number },
      }),
    },
  });
  await projector.whenCaughtUp();
  await using dispatcher = createOutboxDispatcher({
    ledger: db.outbox,
    deliver,
    schedule: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 },
    tickIntervalMs: 20,
  });
  await dispatcher.start();
  await until('all messages are sent', async () => {
    const { SENT } = await db.outbox.counts();
    return SENT === events.length;
  });

  const rows = effects.prepare('select event from effects').all();
  effects.close();
  const numbers = rows.map(
    ({ event }) => (JSON.parse(String(event)) as { data: { at: number } }).data.at,
  );
  assert.deepEqual(
    numbers.toSorted((a, b) => a - b),
    events.map((_event, at) => at),
  );
  assert.ok(requests > events.length, 'no message was sent again');
});
