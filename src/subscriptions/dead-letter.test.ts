import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../foundation/error.ts';
import { startPosition } from '../store/position.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { newEvent } from '../testing/conformance/store/fixture.ts';
import { newDeadLetter, withAttempt } from './dead-letter.ts';

const stored = { stream: 'a.b.v1-core-1', revision: 0, position: startPosition, recordedAt: '' };
const personal: RecordedEvent = {
  ...newEvent({ payload: { name: 'Zelda' }, headers: { dataSubject: 'zelda' } }),
  ...stored,
};

const letterOf = (event: RecordedEvent, error: unknown) => {
  const history = withAttempt({ event, history: [] }, error, 0);
  const context = { id: '1', handler: 'h', shard: 0, parked: false, attempts: 1, nowMs: 0 };
  return newDeadLetter(event, { ...context, error, history });
};

test('a dead letter of an event about a person has neither its payload nor the message of its error', () => {
  const errors = [
    [new TypeError('no such name: Zelda'), /^TypeError: /],
    [new MillraceError('OUTBOX_INVALID', 'invalid: Zelda'), /^OUTBOX_INVALID: /],
    ['Zelda', /^string: /],
  ] as const;
  for (const [error, text] of errors) {
    const letter = letterOf(personal, error);
    assert.equal(JSON.stringify(letter).includes('Zelda'), false);
    assert.match(letter.error, text);
    assert.match(letter.history[0]?.error ?? '', text);
  }
});

test('a dead letter of any other event has both', () => {
  const letter = letterOf(
    { ...newEvent({ payload: { n: 1 } }), ...stored },
    new Error('too small'),
  );
  assert.deepEqual([letter.payload, letter.error], [{ n: 1 }, 'too small']);
  assert.deepEqual(letter.history, [{ at: '1970-01-01T00:00:00.000Z', error: 'too small' }]);
});
