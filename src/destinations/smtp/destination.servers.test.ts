import assert from 'node:assert/strict';
import { createServer, type AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { createDelivery } from '../../delivery/create-delivery.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { destinationConformance } from '../../testing/conformance/delivery/destination.ts';
import type { ReceivedMail, SmtpRejection } from '../../testing/servers/smtp-mailbox.ts';
import { startSmtp } from '../../testing/servers/smtp-server.ts';
import { renderMail } from './mail-template.ts';
import { smtpDestination, type Mail } from './destination.ts';

const smtp = await startSmtp();
const password = 'correct-horse-battery';
const url = smtp.url.replace('smtp://', `smtp://mailer:${password}@`);
const email = await smtpDestination({
  transport: url,
  from: 'Billing <billing@shop.example>',
  compose: ({ payload }) => ({
    to: 'ann@mail.example',
    subject: 'hello',
    text: String(payload['text']),
  }),
});
after(async () => {
  await email[Symbol.asyncDispose]();
  await smtp[Symbol.asyncDispose]();
});

const headerOf = ({ source }: ReceivedMail, name: string): string =>
  new RegExp(`^${name}: (.*)$`, 'mi').exec(source.replace(/\r?\n[ \t]+/g, ' '))?.[1]?.trim() ?? '';

function bodyOf(mail: ReceivedMail): string {
  const body = mail.source.slice(mail.source.search(/\r?\n\r?\n/)).trim();
  const encoding = headerOf(mail, 'Content-Transfer-Encoding');
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString().trim();
  if (encoding !== 'quoted-printable') return body;
  const bytes = body
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return Buffer.from(bytes, 'latin1').toString();
}

const rejecting = (rejection: SmtpRejection) => async () => {
  smtp.reject(rejection);
  return async () => smtp.accept();
};

for (const { name, skip, run } of destinationConformance({
  destination: email,
  async received() {
    return smtp.messages().map((mail) => ({
      idempotencyKey: decodeURIComponent(headerOf(mail, 'X-Idempotency-Key')),
      text: bodyOf(mail),
    }));
  },
  secrets: [password, 'ann@mail.example'],
  away: async () => {
    await smtp.kill();
    return () => smtp.start();
  },
  busy: rejecting({ at: 'recipient', answer: 451 }),
  rejects: rejecting({ at: 'recipient', answer: 550 }),
})) {
  test(`SMTP: ${name}`, { skip: skip ?? false }, run);
}

function deliver(send = email, signal?: AbortSignal): Promise<DeliveryOutcome> {
  const delivery = createDelivery({ destinations: { email: { send, timeoutMs: 60_000 } } });
  return delivery.deliver(
    {
      id: 'o-1',
      integrationType: 'email',
      eventType: 'payment.completed.v1',
      payload: { text: 'hello' },
      sourceStreamId: 'paymenthub.payment.v1-core-1',
      sourceEventId: 'e-repeated',
    },
    signal === undefined ? {} : { signal },
  );
}

test('retries a mail without acknowledgement under the same Message-ID', async () => {
  smtp.reject({ at: 'acknowledgement', answer: 'hang-up' });
  const first = await deliver();
  assert.ok(first.kind === 'retry' && first.ambiguous === true, JSON.stringify(first));
  smtp.accept();
  const second = await deliver();
  const ids = smtp
    .messages()
    .filter((mail) => headerOf(mail, 'X-Idempotency-Key') === 'e-repeated')
    .map((mail) => headerOf(mail, 'Message-ID'));
  assert.equal(ids.length, 2);
  assert.equal(new Set(ids).size, 1);
  assert.ok(second.kind === 'sent' && second.receipt === ids[0]);
});

test('has an outcome for a rejection or disconnect at each SMTP stage', async () => {
  const cases: readonly (readonly [SmtpRejection, DeliveryOutcome['kind']])[] = [
    [{ at: 'connect', answer: 554 }, 'retry'],
    [{ at: 'connect', answer: 'hang-up' }, 'retry'],
    [{ at: 'sender', answer: 550 }, 'dead'],
    [{ at: 'sender', answer: 451 }, 'retry'],
    [{ at: 'recipient', answer: 'hang-up' }, 'retry'],
    [{ at: 'data', answer: 552 }, 'dead'],
    [{ at: 'data', answer: 452 }, 'retry'],
    [{ at: 'data', answer: 'hang-up' }, 'retry'],
  ];
  for (const [rejection, kind] of cases) {
    smtp.reject(rejection);
    const outcome = await deliver();
    assert.equal(outcome.kind, kind, `${JSON.stringify(rejection)}: ${JSON.stringify(outcome)}`);
  }
  smtp.accept();
});

test('sends text and HTML together, and attaches no local file', async () => {
  const mail: Mail & { readonly attachments: readonly object[] } = {
    to: ['ann@mail.example', 'bob@mail.example'],
    ...renderMail({ subject: 'S {{n}}', text: 'T {{n}}', html: '<b>{{n}}</b>' }, { n: 7 }),
    attachments: [],
  };
  const withFile = { ...mail, attachments: [{ path: '/etc/passwd' }] };
  const open = (compose: () => Mail | undefined) =>
    smtpDestination({ transport: smtp.url, from: 'a@shop.example', compose });
  await using both = await open(() => mail);
  assert.equal((await deliver(both)).kind, 'sent');
  const received = smtp.messages().at(-1) ?? assert.fail();
  assert.deepEqual(received.to, ['ann@mail.example', 'bob@mail.example']);
  assert.match(received.source, /multipart\/alternative/);
  assert.match(received.source, /<b>7<\/b>/);
  await using leaking = await open(() => withFile);
  assert.notEqual((await deliver(leaking)).kind, 'sent');
  await using none = await open(() => undefined);
  const skipped = await deliver(none);
  assert.ok(skipped.kind === 'sent' && skipped.skipped !== undefined);
});

test('the signal aborts a call to a server that does not respond', async () => {
  const connected = Promise.withResolvers<void>();
  const silent = createServer(() => connected.resolve());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const transport = `smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const compose = () => ({ to: 'ann@mail.example', subject: 's', text: 't' });
  await using hung = await smtpDestination({ transport, from: 'a@shop.example', compose });
  const stopping = new AbortController();
  const call = deliver(hung, stopping.signal);
  await connected.promise;
  stopping.abort();
  assert.equal((await call).kind, 'retry');
  silent.close();
});

test('rejects an invalid server URL or sender at once', async () => {
  const compose = () => undefined;
  for (const transport of ['http://a', 'smtp://', 'nowhere']) {
    await assert.rejects(smtpDestination({ transport, from: 'a@b.example', compose }), {
      code: 'CONFIG_INVALID',
    });
  }
  await assert.rejects(smtpDestination({ transport: smtp.url, from: 'nobody', compose }), {
    code: 'CONFIG_INVALID',
  });
});
