// Invalid input: rejected with its error code, and without a change in the store.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import type { DomainEventEnvelope } from '../../../contracts/envelope.ts';
import { payloadLimits } from '../../../contracts/json-payload.ts';
import type { ErrorCode } from '../../../foundation/error-codes.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import type { Position } from '../../../store/position.ts';
import { storeLimits } from '../../../store/prepare-append.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  only,
  storedIds,
  type StoreCases,
} from './fixture.ts';

const badStreams: Readonly<Record<string, string>> = {
  'an empty name': '',
  'a line break': 'banking.account.v1-core-a\nb',
  'a null character': 'banking.account.v1-core-a\u0000',
  'a delete character': 'banking.account.v1-core-\u007f',
  'a name that belongs to the system': '$settings',
  'a name of a metadata stream': '$$banking.account.v1-core-a',
  'a name of 201 characters': 'banking.account.v1-core-'.padEnd(201, 'a'),
  'half a surrogate pair': 'banking.account.v1-core-\ud83d',
};

const cycle: Record<string, unknown> = {};
cycle['self'] = { cycle };

class Money {
  readonly amount = 1;
}

const badPayloads: Readonly<Record<string, unknown>> = {
  'not a number': { deep: [{ value: Number.NaN }] },
  infinity: { value: Number.POSITIVE_INFINITY },
  'a big integer': { value: 1n },
  'a function': { value: () => 1 },
  'a symbol': { value: Symbol('x') },
  'an undefined item': { value: [undefined] },
  'a cycle': cycle,
  'an object of a class': { value: new Money() },
  'a map': { value: new Map([['a', 1]]) },
  'an invalid date': { value: new Date(Number.NaN) },
  'nesting beyond the maximum depth': nested(payloadLimits.payloadDepthMax + 1),
};

const badEnvelopes: Readonly<Record<string, Record<string, unknown>>> = {
  'an event type that is not a name': { type: 'AccountCredited' },
  'an event type without a version': { type: 'account.credited' },
  'an event type of the system': { type: '$metadata' },
  'an event type of version 0': { type: 'account.credited.v0' },
  'an event type that is too long': { type: `account.${'c'.repeat(200)}.v1` },
  'no event id': { eventId: '' },
  'an event id that is too long': { eventId: 'e'.repeat(101) },
  'an event id with a line break': { eventId: 'e\n1' },
  'a day that does not exist': { occurredAt: '2025-02-30T10:00:00Z' },
  'no correlation id': { correlationId: undefined },
  'a tenant in capitals': { tenant: 'CORE' },
  'an aggregate without an id': { aggregate: { bc: 'banking', type: 'account' } },
  'an unknown field': { revision: 3 },
};

export const badInputCases: StoreCases = {
  'rejects an append without events': async ({ store }) => {
    await leavesNoTrace(store, 'APPEND_INVALID', []);
  },

  'rejects an append of more events than the limit': async ({ store }) => {
    await leavesNoTrace(store, 'APPEND_INVALID', newEvents(storeLimits.eventsPerAppendMax + 1));
  },

  'rejects an invalid expected revision': async ({ store }) => {
    const stream = newStream();
    await store.append(stream, [newEvent()]);
    for (const expected of [-1, -2, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '0', 'ANY', null]) {
      const options = { expected: expected as ExpectedRevision };
      const { details } = await rejectsWith(
        () => store.append(stream, [newEvent()], options),
        'APPEND_INVALID',
      );
      assert.deepEqual(details['expected'], expected);
      await rejectsWith(() => store.deleteStream(stream, options), 'APPEND_INVALID');
      await rejectsWith(() => store.tombstoneStream(stream, options), 'APPEND_INVALID');
    }
    assert.equal((await store.readStream(stream).toArray()).length, 1);
  },

  ...Object.fromEntries(
    Object.entries(badStreams).map(([what, stream]) => [
      `rejects ${what} as a stream`,
      async ({ store }: { readonly store: EventStore }) => {
        await rejectsWith(() => store.append(stream, [newEvent()]), 'NAME_INVALID');
        await rejectsWith(() => store.setStreamMetadata(stream, { maxCount: 1 }), 'NAME_INVALID');
        await rejectsWith(() => store.deleteStream(stream), 'NAME_INVALID');
        await rejectsWith(() => store.tombstoneStream(stream), 'NAME_INVALID');
      },
    ]),
  ),

  ...Object.fromEntries(
    Object.entries(badEnvelopes).map(([what, fields]) => [
      `rejects an event with ${what}`,
      async ({ store }: { readonly store: EventStore }) => {
        const bad = { ...newEvent(), ...fields } as DomainEventEnvelope;
        const { details } = await leavesNoTrace(store, 'ENVELOPE_INVALID', [bad]);
        const [field = ''] = Object.keys(fields);
        const problems = details['problems'] as readonly { readonly path: string }[];
        assert.ok(only(problems).path.startsWith(`/${field}`));
      },
    ]),
  ),

  'rejects an event id that is not a well-formed string': async ({ store }) => {
    await leavesNoTrace(store, 'APPEND_INVALID', [newEvent({ eventId: 'e-\udc00' })]);
  },

  ...Object.fromEntries(
    Object.entries(badPayloads).map(([what, payload]) => [
      `rejects ${what} in a payload`,
      async ({ store }: { readonly store: EventStore }) => {
        const { details } = await leavesNoTrace(store, 'PAYLOAD_NOT_JSON', [newEvent({ payload })]);
        assert.equal(typeof details['path'], 'string');
      },
    ]),
  ),

  'rejects headers and users that are not JSON': async ({ store }) => {
    for (const headers of [{ at: Number.NaN }, { id: 1n }, { cycle }, { run: () => 1 }]) {
      await leavesNoTrace(store, 'PAYLOAD_NOT_JSON', [newEvent({ headers })]);
    }
    const user = { id: 'u-1', roles: [Number.POSITIVE_INFINITY] };
    const { details } = await leavesNoTrace(store, 'PAYLOAD_NOT_JSON', [newEvent({ user })]);
    assert.equal(details['path'], '/user/roles/0');
  },

  'rejects a payload above the limit': async ({ store }) => {
    const payload = 'x'.repeat(payloadLimits.payloadBytesMax);
    const { details } = await leavesNoTrace(store, 'PAYLOAD_TOO_LARGE', [newEvent({ payload })]);
    assert.equal(details['bytes'], payloadLimits.payloadBytesMax + 2);
  },

  'rejects headers above the limit': async ({ store }) => {
    const headers = { note: 'x'.repeat(payloadLimits.payloadBytesMax) };
    await leavesNoTrace(store, 'PAYLOAD_TOO_LARGE', [newEvent({ headers })]);
  },

  'the payload limit counts bytes and is configurable': async ({ open }) => {
    const store = await open({ payloadBytesMax: 12 });
    const stream = newStream();
    await store.append(stream, [newEvent({ payload: 'x'.repeat(10) })]);
    await rejectsWith(
      () => store.append(stream, [newEvent({ payload: '\u20ac'.repeat(4) })]),
      'PAYLOAD_TOO_LARGE',
    );
    assert.equal((await store.streamInfo(stream))?.revision, 0);
  },

  'rejects one event id twice in an append': async ({ store }) => {
    const event = newEvent();
    await leavesNoTrace(store, 'APPEND_INVALID', [event, newEvent(), event]);
  },

  'rejects an event in the stream of another tenant': async ({ store }) => {
    const { details } = await leavesNoTrace(store, 'TENANT_MISMATCH', [
      newEvent({ tenant: 'demo' }),
    ]);
    assert.equal(details['tenant'], 'demo');
    const stream = newStream('banking.account.v1', 'demo-za');
    await rejectsWith(() => store.append(stream, [newEvent({ tenant: 'za' })]), 'TENANT_MISMATCH');
    await store.append(stream, [newEvent({ tenant: 'demo-za' })]);
    assert.equal((await store.streamInfo(stream))?.revision, 0);
  },

  'one invalid event rejects the whole append': async ({ store }) => {
    const stream = newStream();
    const stored = newEvents(2);
    await store.append(stream, stored);
    const twin = newEvent();
    const bad: readonly (readonly [ErrorCode, readonly DomainEventEnvelope[]])[] = [
      ['ENVELOPE_INVALID', [newEvent({ type: 'nothing' })]],
      ['PAYLOAD_NOT_JSON', [newEvent({ payload: { value: 1n } })]],
      ['PAYLOAD_TOO_LARGE', [newEvent({ payload: 'x'.repeat(2_000_000) })]],
      ['TENANT_MISMATCH', [newEvent({ tenant: 'demo' })]],
      ['APPEND_INVALID', [twin, twin]],
    ];
    for (const [code, events] of bad) {
      await rejectsWith(() => store.append(stream, [...newEvents(3), ...events]), code);
      assert.deepEqual(await storedIds(store, stream), idsOf(stored));
    }
    assert.equal((await store.append(stream, [newEvent()], { expected: 1 })).revision, 2);
  },

  'rejects invalid metadata': async ({ store }) => {
    const stream = newStream();
    for (const metadata of [
      { maxCount: 0 },
      { maxCount: 1.5 },
      { maxCount: Number.NaN },
      { maxAgeSeconds: 0 },
      { maxAgeSeconds: -1 },
      { truncateBefore: -1 },
      { truncateBefore: 0.5 },
    ]) {
      await rejectsWith(() => store.setStreamMetadata(stream, metadata), 'APPEND_INVALID');
    }
    await rejectsWith(
      () => store.setStreamMetadata(stream, { custom: { owner: 1n } }),
      'PAYLOAD_NOT_JSON',
    );
    assert.equal(await store.streamInfo(stream), undefined);
  },

  'rejects an invalid position': async ({ store, signal }) => {
    for (const text of ['', 'END', '42', '-000000000000001', 'ffffffffffffffff', ' '.repeat(16)]) {
      const after = text as Position;
      await rejectsWith(
        async () => store.readAll({ after, limit: 1 }).toArray(),
        'POSITION_INVALID',
      );
      await rejectsWith(
        () => follow(store.subscribe({ after, signal })).next(),
        'POSITION_INVALID',
      );
    }
  },

  'ignores invalid page sizes': async ({ store }) => {
    const stream = newStream();
    const events = newEvents(3);
    await store.append(stream, events);
    for (const pageSize of [0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const read = await store.readStream(stream, { pageSize }).toArray();
      assert.deepEqual(idsOf(read), idsOf(events));
    }
  },

  'an open store accepts any name that it can return unchanged': async ({ open }) => {
    const store = await open({ names: 'open' });
    const event = newEvent({ type: 'AccountCredited', tenant: 'demo' });
    await store.append('$system', [event]);
    await store.append(newStream(), [newEvent({ type: '$odd' })]);
    assert.deepEqual(await storedIds(store, '$system'), [event.eventId]);
    await rejectsWith(() => store.append('', [newEvent()]), 'NAME_INVALID');
    await rejectsWith(() => store.append('a\u0000b', [newEvent()]), 'NAME_INVALID');
    await rejectsWith(() => store.append('a', [newEvent({ payload: 1n })]), 'PAYLOAD_NOT_JSON');
  },
};

/** Asserts that an append to a new stream is rejected and leaves the stream missing. */
async function leavesNoTrace(
  store: EventStore,
  code: ErrorCode,
  events: readonly DomainEventEnvelope[],
): ReturnType<typeof rejectsWith> {
  const stream = newStream();
  const error = await rejectsWith(() => store.append(stream, events), code);
  assert.equal(await store.streamInfo(stream), undefined);
  assert.deepEqual(await storedIds(store, stream), []);
  return error;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = { value };
  return value;
}
