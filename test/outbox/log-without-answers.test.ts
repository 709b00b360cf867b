// What the log tells about failed deliveries: ids, status and length, and no text that a receiver has sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { createDelivery } from '../../src/delivery/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import {
  createOutboxDispatcher,
  createQueueDispatcher,
  createQueueWorker,
} from '../../src/outbox/index.ts';
import { createLogger } from '../../src/telemetry/index.ts';
import { eventually } from '../../src/testing/assertions.ts';
import { enqueued } from '../../src/testing/conformance/outbox/fixture.ts';
import { startHttpReceiver } from '../../src/testing/index.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

test('the log has neither payloads nor what receivers answer, with a dispatcher and with a queue worker', async () => {
  await using receiver = await startHttpReceiver({
    answer({ body }, response) {
      const { data } = JSON.parse(body) as { data: { status: number; email: string } };
      response.writeHead(data.status).end(`Ada Lovelace <${data.email}> has moved`);
    },
  });
  await using destination = webhookDestination({
    endpoint: { id: 'partner-x', url: receiver.url, secrets: [secret] },
    allowAddresses: ['127.0.0.1/32'],
    allowHttp: true,
  });
  for (const mode of ['dispatcher', 'queue'] as const) {
    const lines: string[] = [];
    using log = createLogger({ level: 'debug', stream: { write: (line) => lines.push(line) } });
    const observer = { log };
    await using db = openMemory({ observer });
    const { outbox: ledger, queue } = db;
    const { deliver } = createDelivery({ destinations: { webhook: destination }, observer });
    const sending = { ledger, deliver, observer, schedule, tickIntervalMs: 5 };
    await using stack = new AsyncDisposableStack();
    if (mode === 'dispatcher') await stack.use(createOutboxDispatcher(sending)).start();
    else {
      await stack.use(createQueueDispatcher({ ...sending, queue })).start();
      await stack.use(createQueueWorker({ ...sending, queue })).start();
    }
    const [dead = '', failed = ''] = await enqueued(
      ledger,
      { payload: { status: 422, email: 'ada@example.org' } },
      { payload: { status: 500, email: 'ada@example.org' }, maxAttempts: 2 },
    );
    await eventually('both are dead', async () => (await ledger.counts()).DEAD === 2);
    const all = lines.join('');
    assert.doesNotMatch(all, /Ada|Lovelace|example\.org|moved/);
    const failures = lines
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .filter(({ msg, phase }) => msg === 'outbox' && (phase === 'FAILED' || phase === 'DEAD'))
      .map(({ outboxId, phase, error, answerChars }) => ({ outboxId, phase, error, answerChars }));
    const answerChars = 'Ada Lovelace <ada@example.org> has moved'.length;
    assert.deepEqual(
      failures.toSorted((a, b) => String(a.error).localeCompare(String(b.error))),
      [
        { outboxId: dead, phase: 'DEAD', error: 'HTTP 422', answerChars },
        { outboxId: failed, phase: 'FAILED', error: 'HTTP 500', answerChars },
        { outboxId: failed, phase: 'DEAD', error: 'HTTP 500', answerChars },
      ],
    );
    // Operators find the text in the ledger.
    assert.match((await ledger.find(dead))?.lastError ?? '', /^HTTP 422: Ada Lovelace/);
  }
});

const schedule = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
