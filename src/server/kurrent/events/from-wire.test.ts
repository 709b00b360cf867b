import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createEnvelope, type DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { markHeader, type Mark } from '../../../contracts/event-form.ts';
import { openMemory } from '../../../engines/memory/index.ts';
import { subjectHeader } from '../../../store/erasure.ts';
import { toPosition } from '../../../store/position.ts';
import type { RecordedEvent } from '../../../store/recorded-event.ts';
import { kurrentStoreOptions } from '../kurrent-server.ts';
import { originOf } from './event-origin.ts';
import { fromWire, type ForeignEvent } from './from-wire.ts';
import { nativeMetadata } from './native-metadata.ts';
import { contentOf, correlationOf, toWireEvent } from './to-wire.ts';

const id = '77f06aaa-3a3b-4148-8c99-02c33147c54d';
const stream = 'paymenthub.payment.v1-core-p-1';
const now = '2025-09-30T10:00:00.000Z';

function foreign(data: string | Uint8Array, metadata: string | Uint8Array = ''): ForeignEvent {
  return {
    eventId: id,
    type: 'a',
    isJson: true,
    data: Buffer.from(data),
    metadata: Buffer.from(metadata),
  };
}

function store(event: ForeignEvent, opaque = false): DomainEventEnvelope {
  return fromWire(event, { origin: originOf(stream, 'core'), now, opaque });
}

/** A round trip through JSON, as in a store. */
function recorded(envelope: DomainEventEnvelope): RecordedEvent {
  const copy = JSON.parse(JSON.stringify(envelope)) as DomainEventEnvelope;
  return { ...copy, stream, revision: 0, position: toPosition(1), recordedAt: now };
}

const markOf = (envelope: DomainEventEnvelope) => envelope.headers?.[markHeader] as Mark;

test('any bytes are returned unchanged', () => {
  const text = fc.json().map((json) => Buffer.from(json));
  const pretty = fc.json().map((json) => Buffer.from(JSON.stringify(JSON.parse(json), null, 2)));
  const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
  const content = fc.oneof(text, pretty, bytes);
  fc.assert(
    fc.property(content, content, fc.boolean(), fc.boolean(), (data, metadata, isJson, opaque) => {
      const envelope = store({ eventId: id, type: 'a', isJson, data, metadata }, opaque);
      const read = contentOf(recorded(envelope));
      assert.deepEqual(
        { data: read.data, metadata: read.metadata, isJson: read.isJson },
        { data, metadata, isJson },
      );
    }),
  );
});

test('JSON in the format of Millrace is stored as the payload only', () => {
  const envelope = store(foreign('{"amount":12.5}', '{"k":1}'));
  assert.deepEqual(envelope.payload, { amount: 12.5 });
  assert.deepEqual(envelope.headers, { k: 1, [markHeader]: { json: true } });
});

test('JSON of another serializer is stored as the payload and its exact text', () => {
  for (const text of ['{ "a": 1 }', '{"a":1.0}', '{"a":"\\u002b"}', '{"a":9007199254740993}']) {
    const envelope = store(foreign(text));
    assert.deepEqual(envelope.payload, JSON.parse(text));
    assert.deepEqual(markOf(envelope).data, { text });
  }
});

test('invalid JSON and binary data are stored as bytes', () => {
  for (const event of [foreign('{not json'), foreign(Buffer.from([0xff])), foreign('')]) {
    const envelope = store(event);
    assert.equal(markOf(envelope).data, 'bytes');
    assert.deepEqual(envelope.payload, { $bytes: Buffer.from(event.data).toString('base64') });
  }
  const binary = store({ ...foreign('{"a":1}'), isJson: false });
  assert.equal(markOf(binary).data, 'bytes');
  assert.equal(contentOf(recorded(binary)).isJson, false);
});

test('correlation and causation are read from every form of metadata', () => {
  const members = { $correlationId: 'flow-1', $causationId: 'cause-1' };
  for (const text of [JSON.stringify(members), JSON.stringify(members, null, 1)]) {
    const { correlationId, causationId } = store(foreign('{}', text));
    assert.deepEqual(
      { correlationId, causationId },
      { correlationId: 'flow-1', causationId: 'cause-1' },
    );
  }
  const without = store(foreign('{}', '{"$correlationId":7}'));
  assert.deepEqual([without.correlationId, without.causationId], [id, undefined]);
});

test('only a correlation id of the client pins consumers, not a generated one', () => {
  const given = recorded(store(foreign('{}', '{"$correlationId":"flow-1"}')));
  const none = recorded(store(foreign('{}')));
  assert.deepEqual([correlationOf(given), correlationOf(none)], ['flow-1', undefined]);
});

test('the aggregate comes from the stream name, if it follows our grammar', () => {
  assert.deepEqual(originOf(stream, 'core'), {
    tenant: 'core',
    aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' },
  });
  for (const other of ['orders-1', 'no-hyphens', 'plain', '$settings', '$$orders-1']) {
    assert.deepEqual(originOf(other, ''), {
      tenant: '',
      aggregate: { bc: '', type: '', id: other },
    });
  }
  const { aggregate } = originOf('banking.currency.v1-demo-za-USD', 'demo-za');
  assert.deepEqual(aggregate, { bc: 'banking', type: 'currency', id: 'USD' });
});

const native = createEnvelope(
  { type: 'payment.completed.v1', payload: { amount: 1 } },
  {
    tenant: 'core',
    aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' },
    eventId: id,
    correlationId: 'flow-1',
    headers: { traceparent: '00-1' },
  },
);

test('an event of Millrace that arrives over the wire is stored as such', () => {
  const event = {
    ...foreign(JSON.stringify(native.payload), nativeMetadata(native)),
    type: native.type,
  };
  assert.deepEqual(store(event), native);
  const read = contentOf(recorded(native));
  assert.deepEqual(read.metadata.toString(), nativeMetadata(native));
  assert.deepEqual(read.data.toString(), '{"amount":1}');
});

test('the tenant of an event must be the tenant of its stream', () => {
  const forged = { ...native, tenant: 'other' };
  const envelope = store({
    ...foreign(JSON.stringify(native.payload), nativeMetadata(forged)),
    type: native.type,
  });
  assert.equal(envelope.tenant, 'core');
  assert.ok(markOf(envelope) !== undefined);
});

test('an id that is not a UUID is mapped to one, and the metadata has the original id', () => {
  const event = recorded({ ...native, eventId: 'order-7' });
  const { event: wire } = toWireEvent({ event }, { structuredIds: false });
  assert.match(wire?.id?.string ?? '', /^[0-9a-f-]{36}$/);
  const metadata = JSON.parse(Buffer.from(wire?.customMetadata ?? []).toString()) as object;
  assert.equal((metadata as { eventId: string }).eventId, 'order-7');
});

test('the data of a person is only in the payload, and is erased with the person', async () => {
  await using events = openMemory(kurrentStoreOptions).store;
  const about = JSON.stringify({ [subjectHeader]: 'jane' });
  for (const text of ['{"name":"Jane"}', '{ "name": "Jane" }']) {
    const envelope = fromWire(
      { ...foreign(text, about), eventId: crypto.randomUUID() },
      { origin: originOf(stream, 'core'), now },
    );
    assert.ok(!JSON.stringify(envelope.headers).includes('Jane'));
    await events.append(stream, [envelope]);
  }
  const before = await events.readStream(stream).toArray();
  assert.deepEqual(
    before.map((event) => contentOf(event).data.toString()),
    ['{"name":"Jane"}', '{ "name": "Jane" }'],
  );
  await events.forget('jane');
  for (const event of await events.readStream(stream).toArray()) {
    const { data, metadata, isJson } = contentOf(event);
    assert.equal(isJson, true);
    assert.match(data.toString(), /^\{"\$forgotten":\{"subject":"jane"/);
    assert.equal(metadata.toString(), about);
  }
});

test('a subject that the store would reject is ordinary metadata', () => {
  const envelope = store(foreign('{}', JSON.stringify({ [subjectHeader]: 7 })));
  assert.equal(envelope.headers?.[subjectHeader], undefined);
  assert.equal(contentOf(recorded(envelope)).metadata.toString(), '{"dataSubject":7}');
});

test('stream metadata is parsed even if it is declared as binary', () => {
  const text = '{"$maxCount":3}';
  const envelope = store({ ...foreign(text), type: '$metadata', isJson: false });
  assert.deepEqual(envelope.payload, { $maxCount: 3 });
  assert.equal(contentOf(recorded(envelope)).data.toString(), text);
});
