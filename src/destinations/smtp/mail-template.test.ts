import assert from 'node:assert/strict';
import { test } from 'node:test';
import { renderMail } from './mail-template.ts';
import { messageIdOf } from './destination.ts';
import { outcomeOfRejected, outcomeOfSmtpError, withoutAddresses } from './destination.ts';

test('replaces placeholders, escaped in HTML only', () => {
  const template = {
    subject: 'Order {{ order.id }}',
    text: 'Dear {{name}}, {{amount}}',
    html: '<p>{{name}}</p>',
  };
  const values = { order: { id: 'a\r\nBcc: x' }, name: `<A> & "B"'s`, amount: 0 };
  assert.deepEqual(renderMail(template, values), {
    subject: 'Order a Bcc: x',
    text: `Dear <A> & "B"'s, 0`,
    html: '<p>&lt;A&gt; &amp; &quot;B&quot;&#39;s</p>',
  });
});

test('does not interpret a value as a template or a replacement pattern', () => {
  const rendered = renderMail({ subject: '{{a}}', text: '{{b}}' }, { a: '{{b}}', b: '$& $1' });
  assert.deepEqual(rendered, { subject: '{{b}}', text: '$& $1' });
});

test('the error names the missing value, and inherited properties are not values', () => {
  for (const path of ['missing', 'a.b.c', 'constructor', 'a.__proto__', 'a']) {
    assert.throws(() => renderMail({ subject: `{{${path}}}` }, { a: { b: 1 } }), {
      code: 'PAYLOAD_INVALID',
      message: new RegExp(`'${path}'`),
    });
  }
});

test('the Message-ID is stable per key and a valid header for any key', () => {
  const id = messageIdOf('core|notify|>\r\nBcc: x', 'shop.example');
  assert.match(id, /^<[0-9a-f]{40}@shop\.example>$/);
  assert.equal(id, messageIdOf('core|notify|>\r\nBcc: x', 'shop.example'));
  assert.notEqual(id, messageIdOf('other', 'shop.example'));
});

test('retries 4yz replies and login errors, and dead-letters 5yz replies about the mail', () => {
  const kindOf = (fields: object): string =>
    outcomeOfSmtpError(Object.assign(new Error('no'), fields)).kind;
  assert.equal(kindOf({ code: 'EENVELOPE', responseCode: 550 }), 'dead');
  assert.equal(kindOf({ code: 'EENVELOPE', responseCode: 451 }), 'retry');
  assert.equal(kindOf({ code: 'EMESSAGE', responseCode: 552 }), 'dead');
  assert.equal(kindOf({ code: 'EENVELOPE' }), 'dead');
  assert.equal(kindOf({ code: 'EAUTH', responseCode: 535 }), 'retry');
  assert.equal(kindOf({ code: 'EPROTOCOL', responseCode: 554, command: 'CONN' }), 'retry');
  assert.equal(kindOf({}), 'retry');
  assert.equal(outcomeOfSmtpError(undefined).kind, 'retry');
});

test('retries if a recipient was rejected temporarily, not if all were rejected permanently', () => {
  assert.equal(outcomeOfRejected([550, 451], 3).kind, 'retry');
  const dead = outcomeOfRejected([550, undefined], 3);
  assert.ok(dead.kind === 'dead');
  assert.equal(dead.error, '2 of 3 recipients were rejected: 550, ?');
});

test('removes mail addresses from errors', () => {
  assert.equal(
    withoutAddresses('550 <ann.b@mail.example>: user "ann@x.example" unknown'),
    '550 <…@…>: user "…@…" unknown',
  );
});
