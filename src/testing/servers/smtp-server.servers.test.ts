import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse, type Turn } from './converse.ts';
import type { SmtpStage } from './smtp-mailbox.ts';
import { startSmtp } from './smtp-server.ts';

const greeting: Turn = { expect: /^220 .*\r\n/ };
const hello: Turn = { send: 'EHLO test\r\n', expect: /^250[ ].*\r\n/m };
const sender: Turn = { send: 'MAIL FROM:<from@example.com>\r\n', expect: /^250 .*\r\n/ };
const recipient: Turn = { send: 'RCPT TO:<to@example.com>\r\n', expect: /^250 .*\r\n/ };
const data: Turn = { send: 'DATA\r\n', expect: /^354 .*\r\n/ };
const body: Turn = { send: 'Subject: Hi\r\n\r\nGrüße\r\n.\r\n', expect: /^250 .*\r\n/ };
const mail: readonly Turn[] = [greeting, hello, sender, recipient, data, body];

function replying(code: number, turn: Turn): Turn {
  return { ...turn, expect: new RegExp(`^${code} .*\r\n`) };
}

test('an SMTP server stores mails with their envelope', async () => {
  await using smtp = await startSmtp();
  assert.equal(smtp.url, `smtp://127.0.0.1:${smtp.port}`);
  assert.deepEqual(smtp.messages(), []);
  const received = smtp.whenReceived(2, AbortSignal.timeout(10_000));

  const second = { send: 'RCPT TO:<more@example.com>\r\n', expect: /^250 .*\r\n/ };
  await converse(smtp.port, mail);
  assert.equal(smtp.messages().length, 1);
  await converse(smtp.port, [greeting, hello, sender, recipient, second, data, body]);

  const [first, last] = await received;
  assert.deepEqual(first, {
    from: 'from@example.com',
    to: ['to@example.com'],
    source: 'Subject: Hi\r\n\r\nGrüße\r\n',
  });
  assert.deepEqual(last?.to, ['to@example.com', 'more@example.com']);
});

test('an SMTP server rejects at the requested stage with the requested code', async () => {
  await using smtp = await startSmtp({ reject: { at: 'connect', answer: 421 } });
  await converse(smtp.port, [replying(421, greeting)]);
  smtp.reject({ at: 'sender', answer: 450 });
  await converse(smtp.port, [greeting, hello, replying(450, sender)]);
  smtp.reject({ at: 'recipient', answer: 550 });
  await converse(smtp.port, [greeting, hello, sender, replying(550, recipient)]);
  smtp.reject({ at: 'data', answer: 451 });
  await converse(smtp.port, [greeting, hello, sender, recipient, data, replying(451, body)]);
  assert.deepEqual(smtp.messages(), []);
  smtp.accept();
  await converse(smtp.port, mail);
  assert.equal(smtp.messages().length, 1);
});

test('an SMTP server disconnects without a reply, before or after it stored the mail', async () => {
  await using smtp = await startSmtp();
  const stages: readonly SmtpStage[] = ['connect', 'sender', 'recipient', 'data'];
  for (const at of stages) {
    smtp.reject({ at, answer: 'hang-up' });
    await assert.rejects(converse(smtp.port, mail), /connection closed by the server/);
  }
  assert.deepEqual(smtp.messages(), []);
  smtp.reject({ at: 'acknowledgement', answer: 'hang-up' });
  await assert.rejects(converse(smtp.port, mail), /connection closed by the server/);
  assert.equal(smtp.messages().length, 1);
});

test('a killed SMTP server restarts on the same port with its mails and its requested rejection', async () => {
  await using smtp = await startSmtp();
  await converse(smtp.port, mail);
  smtp.reject({ at: 'sender', answer: 451 });
  await smtp.kill();
  await assert.rejects(converse(smtp.port, []), { code: 'ECONNREFUSED' });
  await smtp.start();
  await converse(smtp.port, [greeting, hello, replying(451, sender)]);
  smtp.accept();
  await converse(smtp.port, mail);
  assert.equal(smtp.messages().length, 2);
});

test('aborting the signal cancels a wait for mail', async () => {
  await using smtp = await startSmtp();
  const stopping = new AbortController();
  const wait = assert.rejects(smtp.whenReceived(1, stopping.signal), { code: 'ABORTED' });
  stopping.abort();
  await wait;
});
