// Publishing: storage, deduplication, order and validation.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { rejectsWith } from '../../assertions.ts';
import {
  ackAll,
  fetchOne,
  fetchSome,
  nothingIn,
  numbered,
  numbersOf,
  publishNumbers,
  queue,
  secondOf,
  upTo,
  workers,
  type BusCases,
} from './fixture.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { compareSequences } from '../../../bus/sequence.ts';

export const publishCases: BusCases = {
  async 'a message arrives with all published fields'(bus) {
    const published = await bus.publish({
      subject: queue,
      id: 'm-1',
      payload: { text: 'ä\u0000"\u2028😀', list: [1, null, { deep: true }] },
      headers: { 'x-source': 'tests', empty: '', größe: 'ü' },
      tenant: 'core',
      correlationId: 'c-1',
      causationId: 'e-1',
      trace: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'a=b' },
      schemaVersion: 3,
    });
    assert.equal(published.isDuplicate, false);
    const delivery = await fetchOne(await bus.group(workers));
    assert.equal(delivery.id, 'm-1');
    assert.equal(delivery.subject, queue);
    assert.equal(delivery.sequence, published.sequence);
    assert.equal(delivery.group, workers.group);
    assert.equal(delivery.deliveryCount, 1);
    assert.deepEqual(delivery.payload, {
      text: 'ä\u0000"\u2028😀',
      list: [1, null, { deep: true }],
    });
    assert.deepEqual(delivery.headers, { 'x-source': 'tests', empty: '', größe: 'ü' });
    assert.deepEqual(delivery.trace, {
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      tracestate: 'a=b',
    });
    const { tenant, correlationId, causationId, contentType, schemaVersion } = delivery;
    assert.deepEqual(
      { tenant, correlationId, causationId, contentType, schemaVersion },
      {
        tenant: 'core',
        correlationId: 'c-1',
        causationId: 'e-1',
        contentType: 'application/json',
        schemaVersion: 3,
      },
    );
    // The broker may run on another machine, whose clock may differ by up to a day.
    assert.ok(Math.abs(delivery.storedAt.getTime() - delivery.time.getTime()) < 86_400_000);
  },

  async 'a payload that is not JSON arrives byte by byte'(bus) {
    const payload = Uint8Array.from({ length: 256 }, (_, at) => at);
    await bus.publish({ subject: queue, payload, contentType: 'application/octet-stream' });
    const delivery = await fetchOne(await bus.group(workers));
    assert.equal(delivery.contentType, 'application/octet-stream');
    assert.deepEqual(delivery.payload, payload);
  },

  async 'accepts every JSON payload'(bus) {
    const payloads = [null, true, 0, -1.5e300, '', 'text', [], {}, [[['deep']]]];
    await bus.publishMany(payloads.map((payload) => ({ subject: queue, payload })));
    const deliveries = await fetchSome(await bus.group(workers), payloads.length);
    assert.deepEqual(
      deliveries.map(({ payload }) => payload),
      payloads,
    );
  },

  async 'accepts a message of the maximum size and rejects one byte more'(bus) {
    const fill = (chars: number) => ({
      subject: queue,
      id: 'm',
      payload: 'x'.repeat(chars),
    });
    // The error contains the size with the envelope.
    const tried = busLimits.messageBytesMax - 2;
    const error = await rejectsWith(() => bus.publish(fill(tried)), 'PAYLOAD_TOO_LARGE');
    const chars = tried - (Number(error.details['bytes']) - busLimits.messageBytesMax);
    await rejectsWith(() => bus.publish(fill(chars + 1)), 'PAYLOAD_TOO_LARGE');
    await bus.publish(fill(chars));
    const { payload } = await fetchOne(await bus.group(workers));
    assert.equal((payload as string).length, chars);
  },

  async 'stores a batch in its order, with increasing sequences per subject'(bus) {
    const published = await publishNumbers(bus, 250);
    assert.equal(published.length, 250);
    for (const [at, { sequence }] of published.entries()) {
      const before = published[at - 1];
      if (before !== undefined) assert.ok(compareSequences(before.sequence, sequence) < 0);
    }
    const deliveries = await fetchSome(await bus.group(workers), 250);
    assert.deepEqual(numbersOf(deliveries), upTo(250));
    assert.deepEqual(
      deliveries.map(({ sequence }) => sequence),
      published.map(({ sequence }) => sequence),
    );
  },

  async 'messages published one after the other keep their order'(bus) {
    for (const message of numbered(20)) await bus.publish(message);
    assert.deepEqual(numbersOf(await fetchSome(await bus.group(workers), 20)), upTo(20));
  },

  async 'stores concurrently published messages once each'(bus) {
    await Promise.all(numbered(100).map((message) => bus.publish(message)));
    const group = await bus.group(workers);
    const numbers = numbersOf(await fetchSome(group, 100)).toSorted((a, b) => a - b);
    assert.deepEqual(numbers, upTo(100));
    await nothingIn(group);
  },

  async 'a batch of several subjects keeps the order of each'(bus) {
    const subjects = ['gbe.notify.topic.a', 'gbe.notify.topic.b', 'gbe.events.api.error'];
    await bus.publishMany(
      upTo(60).map((n) => ({ subject: subjects[n % 3] as string, payload: { n } })),
    );
    for (const [at, subject] of subjects.entries()) {
      const group = await bus.group({ ...workers, group: `g-${at}`, subject });
      const expected = upTo(60).filter((n) => n % 3 === at);
      assert.deepEqual(numbersOf(await fetchSome(group, 20)), expected);
    }
  },

  async 'an empty batch publishes nothing'(bus) {
    assert.deepEqual(await bus.publishMany([]), []);
  },

  async 'stores an id once within the window, and a duplicate returns the sequence of the first'(
    bus,
  ) {
    const first = await bus.publish({ subject: queue, id: 'once', payload: { n: 0 } });
    const again = await bus.publish({ subject: queue, id: 'once', payload: { n: 1 } });
    assert.deepEqual(again, { ...first, isDuplicate: true });
    const batch = await bus.publishMany([
      { subject: queue, id: 'once', payload: { n: 2 } },
      { subject: queue, id: 'twice', payload: { n: 3 } },
      { subject: queue, id: 'twice', payload: { n: 4 } },
    ]);
    assert.deepEqual(
      batch.map(({ isDuplicate }) => isDuplicate),
      [true, false, true],
    );
    assert.equal(batch[2]?.sequence, batch[1]?.sequence);
    const group = await bus.group(workers);
    assert.deepEqual(numbersOf(await fetchSome(group, 2)), [0, 3]);
    await nothingIn(group);
  },

  async 'the same id on another subject is another message'(bus) {
    const id = randomUUID();
    const one = await bus.publish({ subject: 'gbe.notify.topic.a', id, payload: 1 });
    const other = await bus.publish({ subject: 'gbe.notify.topic.b', id, payload: 2 });
    assert.deepEqual([one.isDuplicate, other.isDuplicate], [false, false]);
  },

  async 'stores exactly one of several concurrent publishes with one id'(bus) {
    const message = { subject: queue, id: 'race', payload: { n: 0 } };
    const all = await Promise.all(upTo(20).map(() => bus.publish(message)));
    assert.equal(all.filter(({ isDuplicate }) => !isDuplicate).length, 1);
    assert.equal(new Set(all.map(({ sequence }) => sequence)).size, 1);
    const group = await bus.group(workers);
    await ackAll(await fetchSome(group, 1));
    await nothingIn(group);
  },

  async 'detects a duplicate after the message was acked'(bus) {
    await bus.publish({ subject: queue, id: 'once', payload: { n: 0 } });
    const group = await bus.group(workers);
    await ackAll(await fetchSome(group, 1));
    const again = await bus.publish({ subject: queue, id: 'once', payload: { n: 1 } });
    assert.equal(again.isDuplicate, true);
    await nothingIn(group);
  },
};

export const badPublishCases: BusCases = {
  async 'rejects a subject with a wildcard or an empty token, and an empty subject'(bus) {
    for (const subject of ['gbe.*', 'gbe.>', '', 'gbe..x', 'a b', 'a:b', 5 as never]) {
      await rejectsWith(() => bus.publish({ subject, payload: 1 }), 'NAME_INVALID');
    }
  },

  async 'rejects a payload that is not JSON, naming the path'(bus) {
    const payload = { a: { b: Number.NaN } };
    const error = await rejectsWith(
      () => bus.publish({ subject: queue, payload }),
      'PAYLOAD_NOT_JSON',
    );
    assert.equal(error.details['path'], '/a/b');
    const missing = { subject: queue, payload: undefined };
    await rejectsWith(() => bus.publish(missing), 'PAYLOAD_NOT_JSON');
    const text = { subject: queue, payload: 'text', contentType: 'text/plain' };
    await rejectsWith(() => bus.publish(text), 'BUS_INVALID');
  },

  async 'rejects an envelope that no consumer could parse'(bus) {
    const wrong = [
      { id: '' },
      { id: 'x'.repeat(busLimits.idCharsMax + 1) },
      { id: 'a\nb' },
      { headers: { a: 1 } as never },
      { headers: Object.fromEntries(upTo(65).map((n) => [`h${n}`, ''])) },
      { schemaVersion: 0 },
      { trace: { traceparent: 'nonsense' } },
      { tenant: '' },
    ];
    for (const fields of wrong) {
      await rejectsWith(
        () => bus.publish({ subject: queue, payload: 1, ...fields }),
        'ENVELOPE_INVALID',
      );
    }
  },

  async 'one invalid message rejects its whole batch'(bus) {
    const batch = [...numbered(3), { subject: 'not.*.full', payload: 1 }];
    await rejectsWith(() => bus.publishMany(batch), 'NAME_INVALID');
    await rejectsWith(() => bus.publishMany(numbered(busLimits.publishMax + 1)), 'BUS_INVALID');
    await nothingIn(await bus.group(workers));
  },

  async 'validates a payload against the schema of its subject before storing it'(_bus, context) {
    const payloads = { 'gbe.tasks.*.queue': hasTaskId };
    await using bus = await secondOf(context, { payloads });
    await rejectsWith(() => bus.publish({ subject: queue, payload: {} }), 'PAYLOAD_INVALID');
    await bus.publish({ subject: queue, payload: { taskId: 't' } });
    await bus.publish({ subject: 'gbe.events.api.error', payload: {} });
    const group = await bus.group(workers);
    assert.deepEqual((await fetchOne(group)).payload, { taskId: 't' });
    await nothingIn(group);
  },
};

export const hasTaskId: StandardSchemaV1 = {
  '~standard': {
    version: 1,
    vendor: 'tests',
    validate: (value) =>
      typeof (value as { taskId?: unknown }).taskId === 'string'
        ? { value }
        : { issues: [{ message: 'is missing', path: ['taskId'] }] },
  },
};
