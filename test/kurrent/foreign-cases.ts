// Cases of the adapter and other clients on one server: events of others, its events for others, and its private data.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { rejectsWith } from '../../src/testing/assertions.ts';
import { openKurrent, type KurrentEngine } from '../../src/engines/kurrentdb/index.ts';
import { subjectHeader } from '../../src/store/index.ts';
import {
  assertAscending,
  follow,
  newEvent,
  newEvents,
  newStream,
  only,
  turn,
} from '../../src/testing/conformance/store/fixture.ts';
import type { EventStore } from '../../src/store/index.ts';
import {
  bytesEvent,
  collect,
  event,
  kurrentClient,
  unique,
  type OfficialClient,
} from './official-clients.ts';

export interface ForeignServer {
  readonly url: string;
  /** The store behind the server, if it is ours. */
  readonly store?: EventStore | undefined;
}

export interface ForeignContext extends AsyncDisposable {
  readonly served: ForeignServer;
  readonly client: OfficialClient;
  readonly db: KurrentEngine;
}

export async function connectForeign(served: ForeignServer): Promise<ForeignContext> {
  const client = (await kurrentClient()).connect(served.url);
  const db = await openKurrent(served.url);
  return {
    served,
    client,
    db,
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
    },
  };
}

export function foreignCases({ served, client, db: { store } }: ForeignContext): void {
  test('an event of another client is read as an envelope, with its own names', async () => {
    const stream = unique('Order-');
    const correlation = randomUUID();
    const sent = event({
      type: 'OrderPlaced',
      data: { total: 12 },
      metadata: { $correlationId: correlation, $causationId: 'cause', who: 'jane' },
    });
    await client.append(stream, sent);
    const read = only(await store.readStream(stream).toArray());
    assert.equal(read.type, 'OrderPlaced');
    assert.equal(read.eventId, sent.id);
    assert.deepEqual(read.payload, { total: 12 });
    assert.deepEqual([read.correlationId, read.causationId], [correlation, 'cause']);
    assert.deepEqual(read.headers, { who: 'jane' });
    assert.deepEqual([read.tenant, read.aggregate.id], ['', stream]);
  });

  test('data that is not JSON is read as bytes', async () => {
    const stream = unique('Blob-');
    await client.append(stream, bytesEvent(Uint8Array.from([0, 255, 7])));
    const { payload } = only(await store.readStream(stream).toArray());
    assert.deepEqual(payload, { $bytes: Buffer.from([0, 255, 7]).toString('base64') });
  });

  test('an unreadable event is parked in a group and does not end a subscription', async ({
    signal,
  }) => {
    const stream = newStream();
    const subject = unique('person-');
    const headers = { [subjectHeader]: subject };
    const [first, last] = [newEvent({ headers }), newEvent()];
    const { position: after } = await store.append(stream, [first]);
    const damaged = event({ data: { $sealed: 'AAAA' }, metadata: headers });
    await client.append(stream, damaged);
    await store.append(stream, [last]);
    const group = unique('g');
    const delivered: string[] = [];
    for await (const { event: each, ack } of store.consume({ group, stream, signal })) {
      delivered.push(each.eventId);
      await ack();
      if (each.eventId === last.eventId) break;
    }
    assert.deepEqual(delivered, [first.eventId, last.eventId]);
    const parked = await parkedIn(client, { stream, group });
    assert.deepEqual(parked, [damaged.id]);

    await using follower = follow(store.subscribe({ after, signal }));
    const [read] = await follower.before(last.eventId);
    assert.equal(read?.eventId, damaged.id);
    assert.match(read?.unreadable ?? '', new RegExp(damaged.id));
    // Without the key, the event is erased instead of unreadable, so later cases can read all events.
    await store.forget(subject);
  });

  test('an event of the adapter is JSON with metadata that the tools of KurrentDB understand', async () => {
    const stream = newStream();
    const sent = newEvent({ causationId: 'cause-1' });
    await store.append(stream, [sent]);
    const [read] = await collect(client.api.readStream(stream));
    assert.deepEqual(read?.event?.data, sent.payload);
    const metadata = read?.event?.metadata as Record<string, unknown>;
    assert.equal(metadata['$correlationId'], sent.correlationId);
    assert.equal(metadata['$causationId'], 'cause-1');
    assert.equal(metadata['tenant'], 'core');
  });

  const { store: backing } = served;
  const skip = backing === undefined ? 'the server is not ours' : false;
  test(
    'on the server of Millrace, an event of the adapter is stored as a Millrace event',
    { skip },
    async () => {
      const stream = newStream();
      const sent = newEvents(2, { eventId: unique('no-uuid-') }).map((each, index) => ({
        ...each,
        eventId: `${each.eventId}-${index}`,
      }));
      await store.append(stream, sent);
      const stored = await backing?.readStream(stream).toArray();
      assert.deepEqual(
        stored?.map(({ eventId, tenant, aggregate, payload }) => ({
          eventId,
          tenant,
          aggregate,
          payload,
        })),
        sent.map(({ eventId, tenant, aggregate, payload }) => ({
          eventId,
          tenant,
          aggregate,
          payload,
        })),
      );
    },
  );

  test('erasure keys are not among the events of the store', async () => {
    const stream = newStream();
    const subject = unique('person-');
    await store.append(stream, [newEvent({ headers: { [subjectHeader]: subject } })]);
    await store.forget(subject);
    const all = await store.readAll({ filter: { system: true } }).toArray();
    // The system projections of a server link to all events.
    const streams = all.filter(({ type }) => type !== '$>').map((each) => each.stream);
    assert.ok(streams.includes(stream));
    assert.deepEqual(
      streams.filter((name) => name.includes('subjectKeys')),
      [],
    );
  });

  test('erasure keys can be stored elsewhere', async () => {
    const requestedSubjects: string[] = [];
    await using sealed = await openKurrent(served.url, {
      keys: {
        async get(subjects) {
          requestedSubjects.push(...subjects);
          return new Map(
            subjects.map((subject) => [subject, { kind: 'key', key: new Uint8Array(32) }] as const),
          );
        },
        forget: async () => true,
      },
    });
    const subject = unique('person-');
    await sealed.store.append(newStream(), [newEvent({ headers: { [subjectHeader]: subject } })]);
    assert.deepEqual(requestedSubjects, [subject]);
  });

  test('a client of the user is used and not closed', async () => {
    const borrowed = await openKurrent(client.api);
    const stream = newStream();
    await borrowed.store.append(stream, [newEvent()]);
    await borrowed[Symbol.asyncDispose]();
    assert.equal((await collect(client.api.readStream(stream))).length, 1);
  });

  test('the error of an invalid URL does not contain its password', async () => {
    const error = await rejectsWith(
      () => openKurrent('kurrentdb://jane:secret@h:port'),
      'CONFIG_INVALID',
    );
    assert.ok(!error.message.includes('secret'));
  });

  test('consumers of one group share its events, each event once', async ({ signal }) => {
    const stream = newStream();
    const group = unique('group');
    const events = newEvents(40);
    await store.append(stream, events);
    const seen = new Map<string, number>();
    const leaving = new AbortController();
    const all = AbortSignal.any([signal, leaving.signal]);
    const consume = async (consumer: number): Promise<void> => {
      for await (const delivery of store.consume({ group, stream, signal: all, inFlightMax: 4 })) {
        seen.set(delivery.event.eventId, consumer);
        await delivery.ack();
        if (seen.size === events.length) leaving.abort();
      }
    };
    await Promise.all([consume(1), consume(2)]);
    assert.equal(seen.size, 40);
    assert.equal(new Set(seen.values()).size, 2);
  });

  test('a retried delivery has its attempt number, and a parked one is not delivered again', async ({
    signal,
  }) => {
    const stream = newStream();
    const group = unique('group');
    await store.append(stream, newEvents(3));
    const log: string[] = [];
    for await (const { event: delivered, attempt, ack, retry, park } of store.consume({
      group,
      stream,
      signal,
      inFlightMax: 1,
    })) {
      log.push(`${delivered.revision}:${attempt}`);
      if (delivered.revision === 0 && attempt === 1) await retry('not yet');
      else if (delivered.revision === 1) await park('never');
      else await ack();
      if (delivered.revision === 2) break;
    }
    assert.deepEqual(log, ['0:1', '0:2', '1:1', '2:1']);
  });

  test('a group of $all gets the events of its filter, as envelopes', async ({ signal }) => {
    const category = unique('c');
    const group = unique('group');
    const subject = unique('person-');
    const payload = { name: 'jane' };
    await store.append(newStream(category), [
      newEvent({ payload, headers: { [subjectHeader]: subject } }),
    ]);
    await store.append(newStream(), [newEvent()]);
    for await (const { event: delivered, ack } of store.consume({
      group,
      filter: { category },
      signal,
    })) {
      assert.deepEqual(delivered.payload, payload);
      await ack();
      break;
    }
  });

  test('closing the engine ends its consumers with a reason', async () => {
    const own = await openKurrent(served.url);
    const stream = newStream();
    await own.store.append(stream, [newEvent()]);
    const consumer = own.store.consume({ group: unique('group'), stream })[Symbol.asyncIterator]();
    await consumer.next();
    const ended = rejectsWith(() => consumer.next(), 'STORE_CLOSED');
    await own[Symbol.asyncDispose]();
    await ended;
  });

  test('a filter without matches reports checkpoints along the way', async ({ signal }) => {
    for (let round = 0; round < 14; round += 1) await store.append(newStream(), newEvents(1_000));
    const filter = { category: unique('nothing') };
    await using follower = follow(store.subscribe({ signal, filter, checkpointEvery: 100 }));
    const items = await follower.caughtUp();
    const checkpoints = items.filter(({ kind }) => kind === 'checkpoint');
    assert.ok(checkpoints.length >= 2, `${checkpoints.length} checkpoints`);
    assertAscending(checkpoints.map(({ position }) => position));
  });

  test('a slow reader gets no more than its current page', async ({ signal }) => {
    const category = unique('c');
    const stream = newStream(category);
    for (let round = 0; round < 4; round += 1) await store.append(stream, newEvents(500));
    await using slow = follow(store.subscribe({ signal, filter: { category }, pageSize: 100 }));
    const [first] = (await slow.until(({ kind }) => kind === 'events')).slice(-1);
    assert.ok(first?.kind === 'events' && first.events.length <= 100);
    await slow.count(2_000);
    assert.equal(slow.events.length, 2_000);
  });
}

/** The ids of the parked events of a group, as soon as there is one. */
async function parkedIn(
  { api }: OfficialClient,
  { stream, group }: { readonly stream: string; readonly group: string },
): Promise<readonly string[]> {
  const parked = `$persistentsubscription-${stream}::${group}-parked`;
  for (;;) {
    try {
      const read = await collect(api.readStream(parked, { resolveLinkTos: true }));
      return read.map((each) => each.event?.id ?? '');
    } catch (error) {
      if ((error as { readonly type?: string }).type !== 'stream-not-found') throw error;
      await turn();
    }
  }
}
