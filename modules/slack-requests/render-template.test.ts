import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { escapeMrkdwn, messageOf, renderTemplate } from './render-template.ts';

test('placeholders in text and blocks are filled with escaped data', () => {
  const template = {
    text: '{{ order.id }}: {{count}} × {{ok}}',
    blocks: [{ type: 'section', text: { type: 'mrkdwn', text: '*{{order.id}}*' } }],
  };
  const data = { order: { id: '<!channel> & co' }, count: 0, ok: false };
  assert.deepEqual(renderTemplate(template, data), {
    kind: 'rendered',
    message: {
      text: '&lt;!channel&gt; &amp; co: 0 × false',
      blocks: [{ type: 'section', text: { type: 'mrkdwn', text: '*&lt;!channel&gt; &amp; co*' } }],
    },
  });
});

test('all missing data is reported together, and inherited properties do not count', () => {
  const template = { text: '{{a.b}} {{constructor}} {{list}} {{none}}', blocks: [{ x: '{{c}}' }] };
  assert.deepEqual(renderTemplate(template, { a: {}, list: [1], none: null }), {
    kind: 'failed',
    code: 'template-data-missing',
    reason: 'the data has no a.b, c, constructor, list, none',
  });
});

test('data is never rendered as a template', () => {
  const rendering = renderTemplate({ text: '{{a}}' }, { a: '{{b}}', b: 'secret' });
  assert.ok(rendering.kind === 'rendered' && rendering.message.text === '{{b}}');
});

test('data cannot create links, mentions or entities', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const escaped = escapeMrkdwn(text);
      assert.doesNotMatch(escaped, /[<>]/);
      assert.doesNotMatch(escaped, /&(?!amp;|lt;|gt;)/);
      const back = escaped.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
      assert.equal(back, text);
    }),
  );
});

test('messages that Slack would truncate or reject fail before they are sent', () => {
  const codeOf = (rendering: ReturnType<typeof messageOf>): string =>
    rendering.kind === 'failed' ? rendering.code : 'rendered';
  assert.equal(codeOf(messageOf({ text: 'hi', blocks: [{ type: 'divider' }] })), 'rendered');
  assert.equal(codeOf(messageOf({})), 'template-data-missing');
  assert.equal(codeOf(messageOf({ text: ' ' })), 'message-empty');
  assert.equal(codeOf(messageOf({ text: 'x'.repeat(40_001) })), 'message-too-long');
  assert.equal(codeOf(messageOf({ text: 'x', blocks: 'y' })), 'blocks-invalid');
  assert.equal(
    codeOf(messageOf({ text: 'x', blocks: Array.from({ length: 51 }, () => ({})) })),
    'message-too-long',
  );
});
