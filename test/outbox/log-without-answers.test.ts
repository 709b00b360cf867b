// Logs and spans of failed deliveries have ids, status and length, and no text that a receiver has sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { smsDestination, twilioProvider } from '../../src/destinations/sms/index.ts';
import { smtpDestination } from '../../src/destinations/smtp/index.ts';
import { webhookDestination } from '../../src/destinations/webhook/index.ts';
import { createDelivery } from '../../src/delivery/index.ts';
import { openMemory } from '../../src/engines/memory/index.ts';
import type { Observer } from '../../src/foundation/index.ts';
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

test('logs and spans have neither payloads nor answers of receivers, with a dispatcher and with a queue worker', async () => {
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
    const spans: unknown[] = [];
    const observer = { log, span: spansIn(spans) };
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
    assert.doesNotMatch(inspect(spans), /Ada|Lovelace|example\.org|moved/);
    assert.match(inspect(spans), /status 422/);
    const failures = lines
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
      .filter(({ msg, phase }) => msg === 'outbox' && (phase === 'FAILED' || phase === 'DEAD'))
      .map(({ outboxId, phase, error, answerChars }) => ({ outboxId, phase, error, answerChars }));
    const answerChars = 'Ada Lovelace <ada@example.org> has moved'.length;
    assert.deepEqual(
      failures.toSorted((a, b) => String(a.error).localeCompare(String(b.error))),
      [
        { outboxId: dead, phase: 'DEAD', error: 'status 422', answerChars },
        { outboxId: failed, phase: 'FAILED', error: 'status 500', answerChars },
        { outboxId: failed, phase: 'DEAD', error: 'status 500', answerChars },
      ],
    );
    // Operators find the text in the ledger.
    assert.match((await ledger.find(dead))?.lastError ?? '', /^HTTP 422: Ada Lovelace/);
  }
});

/** Records all that a span is given, with the messages and stacks of errors. */
function spansIn(recorded: unknown[]): Required<Observer>['span'] {
  return (...given) => {
    recorded.push(given);
    return {
      context: undefined,
      set: (attributes) => void recorded.push(attributes),
      fail: (error) => void recorded.push(error),
      end: () => undefined,
    };
  };
}

test('replies of mail servers and SMS providers are not in logs and spans', async () => {
  const answer = 'content "Dear Ada" was rejected';
  await using provider = await startHttpReceiver({
    answer: (_request, response) =>
      response.writeHead(400).end(JSON.stringify({ code: 21_610, message: answer })),
  });
  const reply = { code: 'EMESSAGE', responseCode: 554, response: `554 5.7.1 ${answer}` };
  await using mail = await smtpDestination({
    transport: {
      sendMail: () =>
        Promise.reject(Object.assign(new Error(`Message failed: 554 5.7.1 ${answer}`), reply)),
      close: () => undefined,
    },
    from: 'shop@example.org',
    compose: () => ({ to: 'ada@example.org', subject: 's', text: 't' }),
  });
  await using twilio = twilioProvider({
    accountSid: 'AC1',
    authToken: 'not-a-real-auth-token',
    from: '+15550001111',
    apiUrl: provider.url,
  });
  const sms = smsDestination({
    provider: twilio,
    compose: () => ({ to: '+15551234567', body: 'b' }),
  });
  const lines: string[] = [];
  const spans: unknown[] = [];
  using log = createLogger({ level: 'debug', stream: { write: (line) => lines.push(line) } });
  const observer = { log, span: spansIn(spans) };
  await using db = openMemory({ observer });
  const { outbox: ledger } = db;
  const { deliver } = createDelivery({ destinations: { mail, sms }, observer });
  const sending = { ledger, deliver, observer, schedule, tickIntervalMs: 5 };
  await using dispatcher = createOutboxDispatcher(sending);
  await dispatcher.start();
  await enqueued(ledger, { integrationType: 'mail' }, { integrationType: 'sms' });
  await eventually('both are dead', async () => (await ledger.counts()).DEAD === 2);
  const [first] = await ledger.list({ status: 'DEAD' });
  assert.match(first?.lastError ?? '', /Dear Ada/);
  assert.doesNotMatch(lines.join('') + inspect(spans), /Dear|Ada|rejected/);
  assert.match(lines.join(''), /status 554/);
  assert.match(inspect(spans), /status 400/);
});

const schedule = { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 };
