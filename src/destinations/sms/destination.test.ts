import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import {
  destinationConformance,
  type Received,
} from '../../testing/conformance/delivery/destination.ts';
import { startHttpReceiver, type AnswerRequest } from '../../testing/servers/http-receiver.ts';
import { smsDestination, type Sms } from './destination.ts';
import { twilioProvider } from './twilio.ts';

const authToken = 'not-a-real-auth-token';
const to = '+15551234567';

interface Sent extends Received {
  readonly form: Readonly<Record<string, string>>;
}

const sent: Sent[] = [];
/** A fake of Twilio's message API over real HTTP. */
const behave: AnswerRequest = ({ path, headers, body }, response) => {
  const login = `Basic ${Buffer.from(`AC1:${authToken}`).toString('base64')}`;
  const say = (status: number, answer: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  };
  if (path !== '/2010-04-01/Accounts/AC1/Messages.json') return say(404, { code: 20_404 });
  if (headers.authorization !== login) {
    return say(401, { code: 20_003, message: 'Authenticate', status: 401 });
  }
  const form = Object.fromEntries(new URLSearchParams(body));
  const idempotencyKey = decodeURIComponent(String(headers['idempotency-key']));
  sent.push({ idempotencyKey, text: form['Body'] ?? '', form });
  return say(201, {
    sid: `SM${sent.length}`,
    to: form['To'],
    body: form['Body'],
    status: 'queued',
  });
};
const twilio = await startHttpReceiver({ answer: behave });
const open = (fields: { authToken?: string; from?: string } = {}) =>
  twilioProvider({
    accountSid: 'AC1',
    authToken,
    from: '+15550001111',
    apiUrl: twilio.url,
    ...fields,
  });
const provider = open();
after(async () => {
  await provider[Symbol.asyncDispose]();
  await twilio[Symbol.asyncDispose]();
});

const answering = (status: number, answer: object, headers: Record<string, string> = {}) => {
  return async () => {
    const back = twilio.answer((_request, response) =>
      response.writeHead(status, headers).end(JSON.stringify(answer)),
    );
    return async () => back();
  };
};

for (const { name, skip, run } of destinationConformance({
  destination: smsDestination({
    provider,
    compose: ({ payload }) => ({ to, body: String(payload['text']) }),
  }),
  received: async () => sent,
  secrets: [authToken, to],
  away: () => twilio.away(),
  busy: answering(429, { code: 20_429 }, { 'retry-after': '2' }),
  rejects: answering(400, { code: 21_211, message: `'To' number ${to} is not valid` }),
  silent: async () => {
    const back = twilio.answer(() => undefined);
    return async () => back();
  },
})) {
  test(`SMS: ${name}`, { skip: skip ?? false }, run);
}

function deliver(sms: Sms | undefined, by = provider): Promise<DeliveryOutcome> {
  const send = smsDestination({ provider: by, compose: () => sms });
  const delivery = createDelivery({ destinations: { sms: { send, timeoutMs: 60_000 } } });
  return delivery.deliver({
    id: 'o-1',
    integrationType: 'sms:alerts',
    eventType: 'payment.completed.v1',
    payload: {},
    sourceStreamId: 'paymenthub.payment.v1-core-1',
    sourceEventId: 'e-1',
  });
}

test('sends number, sender and text in the format of Twilio, by number or by messaging service', async () => {
  const outcome = await deliver({ to, body: 'a & b' });
  assert.deepEqual(outcome, { kind: 'sent', receipt: `SM${sent.length}` });
  assert.deepEqual(sent.at(-1)?.form, { To: to, Body: 'a & b', From: '+15550001111' });
  await using service = open({ from: 'MG7' });
  await deliver({ to, body: 'x' }, service);
  assert.deepEqual(sent.at(-1)?.form, { To: to, Body: 'x', MessagingServiceSid: 'MG7' });
});

test('does not send to an invalid number, or if compose returns undefined', async () => {
  const before = sent.length;
  for (const bad of ['', '5551234567', '+0123456789', '+1555', 'ann@mail.example']) {
    assert.equal((await deliver({ to: bad, body: 'x' })).kind, 'dead');
  }
  const skipped = await deliver(undefined);
  assert.ok(skipped.kind === 'sent' && skipped.skipped !== undefined);
  assert.equal(sent.length, before);
});

test('the error of a rejection contains its code, but neither number nor text', async () => {
  const message = `The 'To' number ${to} or (555) 123-4567 is not valid`;
  const back = await answering(400, { code: 21_211, message, status: 400 })();
  const outcome = await deliver({ to, body: 'secret text' });
  await back();
  assert.deepEqual(outcome, {
    kind: 'dead',
    error: "HTTP 400 (21211): The 'To' number … or (… is not valid",
    answer: { status: 400, body: "The 'To' number … or (… is not valid" },
  });
});

test('retries after a wrong login', async () => {
  await using wrong = open({ authToken: 'other' });
  const outcome = await deliver({ to, body: 'x' }, wrong);
  assert.deepEqual(outcome, {
    kind: 'retry',
    error: 'HTTP 401 (20003): Authenticate',
    answer: { status: 401, body: 'Authenticate' },
  });
});

test('a 5xx response is ambiguous, a 429 response is not', async () => {
  let back = await answering(503, {})();
  const broken = await deliver({ to, body: 'x' });
  await back();
  assert.ok(broken.kind === 'retry' && broken.ambiguous === true);
  back = await answering(429, { code: 20_429 }, { 'retry-after': '2' })();
  const busy = await deliver({ to, body: 'x' });
  await back();
  assert.ok(busy.kind === 'retry' && busy.ambiguous === undefined && busy.afterMs === 2_000);
});
