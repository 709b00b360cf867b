import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isMessageId, newMessageId, timeOfMessageId, toTopicMessage } from './topic-message.ts';

test('a message id has the form of ntfy and contains its second', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1_767_225_600_000, max: 2_600_000_000_000 }), (nowMs) => {
      const id = newMessageId(nowMs);
      assert.ok(isMessageId(id));
      assert.equal(timeOfMessageId(id), Math.floor(nowMs / 1_000) * 1_000);
    }),
  );
  assert.notEqual(newMessageId(1_800_000_000_000), newMessageId(1_800_000_000_000));
});

test('any payload that another producer publishes becomes a message', () => {
  const source = { busId: 'some id', topic: 't', storedAtMs: 1_800_000_000_000 };
  fc.assert(
    fc.property(fc.jsonValue(), (payload) => {
      const message = toTopicMessage(payload, source);
      assert.ok(isMessageId(message.id));
      assert.equal(message.topic, 't');
      assert.equal(typeof message.message, 'string');
      assert.deepEqual(toTopicMessage(payload, source), message);
    }),
  );
});
