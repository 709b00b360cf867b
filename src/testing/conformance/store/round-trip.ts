// Every JSON payload and every field of the envelope is returned unchanged.

import assert from 'node:assert/strict';
import { payloadLimits } from '../../../contracts/json-payload.ts';
import { eventFormats } from '../../../contracts/event-form.ts';
import { subjectHeader } from '../../../store/erasure.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { follow, newEvent, newStream, only, unique, type StoreCases } from './fixture.ts';

const payloads: Readonly<Record<string, unknown>> = {
  'scripts from all over the world': 'Grüße, \u03ba\u03cc\u03c3\u03bc\u03b5, 世界, नमस्ते, ꦗꦮ',
  'emoji of several parts': '👩‍👩‍👧‍👦 🏳️‍🌈 🇿🇦 👍🏽',
  'text from right to left': {
    '\u05e9\u05dc\u05d5\u05dd': '\u202e\u0645\u0631\u062d\u0628\u0627\u202c',
  },
  'combining marks, composed and not': ['\u00e9', 'e\u0301', '\u212b', '\u00c5'],
  'halves of surrogate pairs': { '\ud800': 'a\udfffb', swapped: '\udc00\ud800' },
  'control characters': '\u0000\u0001\b\t\n\u000b\f\r\u001f\u007f\u0080\u2028\u2029\ufeff\uffff',
  'quotes and backslashes': `"'\`\\\\"\\u0041\${x}{{y}}%s;--</script>`,
  'strings that look like a number, a date or null': [
    '1e3',
    '2025-09-30',
    'null',
    'NaN',
    'true',
    '',
  ],
  'nothing at all': null,
  'a bare false': false,
  'a bare zero': 0,
  'an empty string': '',
  'empty lists and objects': { list: [], object: {}, both: [[], {}, [{}]] },
  'numbers at the edge': [
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    Number.MAX_VALUE,
    Number.MIN_VALUE,
    Number.EPSILON,
    0.1 + 0.2,
    1e21,
    1e-7,
    123_456_789.123_456_79,
  ],
  'keys that objects inherit': JSON.parse(
    '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":2,"hasOwnProperty":null}',
  ),
  'keys that databases dislike': { '': 1, $set: 2, 'a.b': 3, 'a\u0000b': 4, ' ': 5, '\u20ac': 6 },
  'keys that look like ours': { $sealed: 'AAAA', $tb: 1, payload: 2, meta: 3, sequence: 4 },
  'nesting of the maximum depth': nested(payloadLimits.payloadDepthMax - 1),
  'a thousand keys': Object.fromEntries(
    Array.from({ length: 1_000 }, (_, key) => [`k${key}`, key]),
  ),
  'a string of 900 kB': `${'0123456789'.repeat(90_000)}\u20ac`,
  'a list of 50,000 numbers': Array.from({ length: 50_000 }, (_, index) => index),
};

export const roundTripCases: StoreCases = {
  ...Object.fromEntries(
    Object.entries(payloads).map(([what, payload]) => [
      `${what}: the payload is returned unchanged`,
      async ({ store }: { readonly store: EventStore }) => {
        const read = await storeAndRead(store, { payload });
        assert.deepEqual(read.payload, payload);
      },
    ]),
  ),

  'each format of events: they are returned as they were appended, whatever the payload looks like':
    async ({ open }) => {
      for (const eventFormat of eventFormats) {
        await using store = await open({ eventFormat });
        const id = unique('a');
        const stream = `banking.account.v1-core-${id}`;
        const aggregate = { bc: 'banking', type: 'account', id };
        const plain = newEvent({ aggregate, eventId: unique('no-uuid-') });
        const whole = newEvent({
          aggregate,
          causationId: 'cause',
          idempotencyKey: 'key',
          user: { id: 'u-1', name: 'Jane' },
          headers: { traceparent: '00-1', nested: { a: null } },
        });
        const events = [
          plain,
          whole,
          newEvent({ aggregate, payload: { ...whole, payload: plain } }),
          newEvent({ aggregate, payload: [], headers: { [subjectHeader]: unique('jane-') } }),
        ];
        await store.append(stream, events);
        const read = await store.readStream(stream).toArray();
        assert.deepEqual(
          read.map(({ stream: _stream, revision, position: _at, recordedAt: _time, ...rest }) => [
            revision,
            rest,
          ]),
          events.map((event, revision) => [revision, event]),
          eventFormat,
        );
        const [first] = events;
        assert.deepEqual(
          (await store.findEvent(stream, first?.eventId ?? ''))?.payload,
          first?.payload,
        );
      }
    },

  'keeps the order of payload keys': async ({ store }) => {
    const payload = { zebra: 1, apple: { y: 1, x: 2 }, mango: [{ b: 1, a: 2 }], longer: 1, a: 1 };
    const read = await storeAndRead(store, { payload });
    assert.equal(JSON.stringify(read.payload), JSON.stringify(payload));
  },

  'a payload key __proto__ stays a payload key': async ({ store }) => {
    const payload: unknown = JSON.parse('{"__proto__":{"admin":true}}');
    const read = (await storeAndRead(store, { payload })).payload as Record<string, unknown>;
    assert.deepEqual(Object.keys(read), ['__proto__']);
    assert.equal(read['admin'], undefined);
  },

  'minus zero is read as zero, because JSON has none': async ({ store }) => {
    const read = await storeAndRead(store, { payload: [-0] });
    assert.ok(Object.is((read.payload as number[])[0], 0));
  },

  'a date is read as a string, and an absent field stays absent': async ({ store }) => {
    const payload = { at: new Date(0), absent: undefined };
    const read = await storeAndRead(store, { payload });
    assert.deepEqual(read.payload, { at: '1970-01-01T00:00:00.000Z' });
  },

  'returns every field of a complete envelope': async ({ store }) => {
    const event = {
      ...newEvent(),
      type: 'account.credit-limit-raised.v12',
      eventId: `e|1:${unique('')} \u20ac\u{1f4b6}`,
      occurredAt: '2024-02-29T23:59:59.123456789+05:30',
      correlationId: 'req/1 \u00e9',
      causationId: 'cmd-1',
      idempotencyKey: 'core|banking|credit|a-1',
      aggregate: { bc: 'core-banking', type: 'credit-account', id: 'A_1.x-9', version: 3 },
      user: { id: 'u-1', email: 'jane@example.com', name: 'Jané', roles: ['maker', { x: null }] },
      headers: { traceparent: '00-1-2-01', list: [1, 'a', null], nested: { deep: { er: true } } },
      payload: { amount: 12.5 },
    };
    const stream = newStream();
    const { revision, position } = await store.append(stream, [event]);
    const { recordedAt, ...recorded } = only(await store.readStream(stream).toArray());
    assert.deepEqual(recorded, { ...event, stream, revision, position });
    assert.equal(new Date(recordedAt).toISOString(), recordedAt);
  },

  'returns a minimal envelope without additional fields': async ({ store }) => {
    const event = newEvent();
    const recorded = await storeAndRead(store, event);
    const added = ['position', 'recordedAt', 'revision', 'stream'];
    assert.deepEqual(
      Object.keys(recorded).toSorted(),
      [...Object.keys(event), ...added].toSorted(),
    );
  },

  'returns every event of an append with its own fields': async ({ store }) => {
    const stream = newStream();
    const events = Array.from({ length: 20 }, (_, index) =>
      newEvent({
        type: `account.step-taken.v${index + 1}`,
        correlationId: `flow-${index}`,
        ...(index % 2 === 0 ? { causationId: `cause-${index}` } : {}),
        ...(index % 3 === 0 ? { headers: { index } } : {}),
        payload: index % 4 === 0 ? null : { index },
      }),
    );
    await store.append(stream, events);
    const recorded = await store.readStream(stream).toArray();
    assert.deepEqual(
      recorded.map(({ stream: _1, revision: _2, position: _3, recordedAt: _4, ...event }) => event),
      events,
    );
  },

  'every kind of read returns the same event': async ({ store, signal }) => {
    const category = unique('c');
    const stream = newStream(category);
    const event = newEvent({
      headers: { [subjectHeader]: unique('person-') },
      payload: { name: 'Jane' },
    });
    await store.append(stream, [event]);
    const fromStream = only(await store.readStream(stream).toArray());
    assert.deepEqual(fromStream.payload, { name: 'Jane' });
    assert.deepEqual(only(await store.readAll({ filter: { category } }).toArray()), fromStream);
    assert.deepEqual(await store.findEvent(stream, event.eventId), fromStream);
    await using all = follow(store.subscribe({ filter: { category }, signal }));
    assert.deepEqual(only(await all.count(1)), fromStream);
    await using one = follow(store.subscribeToStream(stream, { signal }));
    assert.deepEqual(only(await one.count(1)), fromStream);
  },

  'the recording time does not change between reads': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    const first = only(await store.readStream(stream).toArray());
    await store.append(stream, [newEvent()]);
    const again = await store.readStream(stream).toArray();
    assert.deepEqual(again[0], first);
    assert.ok(Date.parse(again[1]?.recordedAt ?? '') >= Date.parse(first.recordedAt));
  },
};

async function storeAndRead(store: EventStore, fields: Parameters<typeof newEvent>[0]) {
  const stream = newStream();
  await store.append(stream, [newEvent(fields)]);
  return only(await store.readStream(stream).toArray());
}

function nested(depth: number): unknown {
  let value: unknown = ['leaf'];
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? { value } : [value];
  return value;
}
