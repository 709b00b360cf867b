import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { newSubjectKey, subjectHeader, unseal } from './erasure.ts';
import { prepareAppend, storeLimits } from './prepare-append.ts';
import type { SubjectKey, SubjectKeys } from './erasure.ts';
import { newEvent, newEvents, newStream, only } from '../testing/conformance/store/fixture.ts';

describe('prepareAppend', () => {
  test('an append with too many bytes is rejected although each payload is small enough', () => {
    const payload = 'x'.repeat(1_000_000);
    const events = newEvents(Math.ceil(storeLimits.appendBytesMax / 1_000_000) + 1, { payload });
    assert.throws(
      () => prepareAppend({ stream: newStream(), events }, {}, noKeys),
      (error) => hasCode(error, 'APPEND_INVALID') && error.message.includes('bytes'),
    );
  });

  test('requests no key for events without a data subject', async () => {
    const { rows } = await prepareAppend({ stream: newStream(), events: newEvents(3) }, {}, noKeys);
    assert.equal(rows.length, 3);
  });

  test('an engine gets personal data only encrypted', async () => {
    const key = newSubjectKey();
    const event = newEvent({
      payload: { name: 'Jane Doe' },
      headers: { [subjectHeader]: 'person-1' },
    });
    const { rows } = await prepareAppend(
      { stream: newStream(), events: [event] },
      {},
      keysOf(new Map([['person-1', { kind: 'key', key }]])),
    );
    const { payload, meta } = only(rows);
    assert.ok(!payload.includes('Jane'));
    assert.ok(!meta.includes('Jane'));
    const about = { eventId: event.eventId, subject: 'person-1' };
    assert.deepEqual(unseal(JSON.parse(payload), about, { kind: 'key', key }), event.payload);
  });

  test('encrypts the same payload differently each time', async () => {
    const keys = keysOf(new Map([['person-1', { kind: 'key', key: newSubjectKey() }]]));
    const events = newEvents(2, { payload: 'x', headers: { [subjectHeader]: 'person-1' } });
    const { rows } = await prepareAppend({ stream: newStream(), events }, {}, keys);
    assert.notEqual(rows[0]?.payload, rows[1]?.payload);
  });

  test('events modified while keys are loaded are written unmodified', async () => {
    const keysRequested = Promise.withResolvers<void>();
    const loadedKeys = Promise.withResolvers<ReadonlyMap<string, SubjectKey>>();
    const keys: SubjectKeys = {
      get: () => {
        keysRequested.resolve();
        return loadedKeys.promise;
      },
      forget: async () => false,
    };
    const payload = { amount: 1 };
    const headers = { [subjectHeader]: 'person-1' };
    const events = [newEvent({ payload, headers }), newEvent({ payload })];
    const preparing = prepareAppend({ stream: newStream(), events }, {}, keys);
    await keysRequested.promise;
    payload.amount = 2;
    headers[subjectHeader] = 'person-2';
    events.length = 0;
    const key: SubjectKey = { kind: 'key', key: newSubjectKey() };
    loadedKeys.resolve(new Map([['person-1', key]]));
    const { rows } = await preparing;
    assert.equal(rows.length, 2);
    assert.equal(rows[1]?.payload, '{"amount":1}');
    const [sealed] = rows;
    assert.ok(sealed?.meta.includes('person-1'));
    const about = { eventId: sealed?.eventId ?? '', subject: 'person-1' };
    assert.deepEqual(unseal(JSON.parse(sealed?.payload ?? ''), about, key), { amount: 1 });
  });

  test('in a store with open names, only metadata events change the retention', async () => {
    const payload = { $maxCount: 2, owner: 'jane' };
    const events = [newEvent({ type: '$metadata', payload })];
    const open = { names: 'open' } as const;
    const write = await prepareAppend({ stream: '$$account-1', events }, open, noKeys);
    assert.deepEqual(write.retention, { of: 'account-1', values: { maxCount: 2 } });
    const other = await prepareAppend({ stream: 'account-1', events }, open, noKeys);
    assert.equal(other.retention, undefined);
  });
});

const noKeys: SubjectKeys = {
  get: () => assert.fail('requested keys'),
  forget: () => assert.fail('forget must not be called'),
};

function keysOf(keys: ReadonlyMap<string, SubjectKey>): SubjectKeys {
  return { ...noKeys, get: async () => keys };
}
