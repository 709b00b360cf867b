// The parts of the live feed: buffering, live documents, missed messages and the message limit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from 'millrace/engines/memory';
import { createEnvelope, type NewEvent } from 'millrace/contracts';
import { createIds, hasCode, silentObserver } from 'millrace/foundation';
import { createTopics } from 'millrace/platform';
import { documentsOf } from 'millrace/projections';
import { startPosition, type EventStore, type Position } from 'millrace/store';
import { fakeClock } from 'millrace/testing';
import { chatCreated, messagePosted, participantJoined, participantLeft } from '../chat-events.ts';
import { chatProjection } from '../chat-read-models.ts';
import { workspaceProjection } from '../workspace.ts';
import { collabError } from './collab-errors.ts';
import { createLiveDocuments, createLiveFeed, type LiveFeed } from './live-feed.ts';
import { topics } from './live-message.ts';
import { createLiveSubscription, missedInChat } from './live-subscription.ts';
import { createMessageLimiter, messageLimits } from './message-limiter.ts';

type Item = Parameters<LiveFeed['publish']>[1];

const at = (count: number): Position => count.toString(16).padStart(16, '0') as Position;
const message = (count: number): Item => ({
  kind: 'message',
  position: at(count),
  text: `${count}`,
});

function subscriptionRig({ since }: { readonly since?: Position } = {}) {
  const rooms = createTopics<Item>();
  const sent: unknown[] = [];
  /** Pending access checks, which the test passes or rejects. */
  const checks: { readonly pass: () => void; readonly fail: () => void }[] = [];
  const lost: unknown[] = [];
  const { signal } = new AbortController();
  const subscription = createLiveSubscription({
    topic: 't',
    userId: 'zoe',
    since,
    client: { signal, send: (each) => void sent.push(each), whenSent: () => Promise.resolve() },
    feed: { position: at(10), join: (topic, listen) => rooms.join(topic, listen) },
    check: () =>
      new Promise((pass, reject) => {
        checks.push({ pass, fail: () => reject(new Error('no')) });
      }),
    welcome: (position) => ({ welcome: position }),
    async *missed(from) {
      for (const count of [8, 9, 12]) {
        const live = { topic: 't', position: at(count), message: { type: `missed ${count}` } };
        if (live.position > from) yield live;
      }
    },
    onLost: (error) => lost.push(error),
  });
  const next = async (): Promise<(typeof checks)[number]> => {
    while (checks.length === 0) await new Promise((resolve) => setImmediate(resolve));
    return checks.shift() as (typeof checks)[number];
  };
  return { rooms, sent, lost, subscription, next };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('messages that arrive while catching up are buffered and sent once', async () => {
  const { rooms, sent, subscription, next } = subscriptionRig({ since: at(8) });
  const begun = subscription.begin();
  for (const count of [11, 12, 13]) rooms.publish('t', message(count));
  (await next()).pass();
  (await next()).pass();
  await begun;
  rooms.publish('t', message(14));
  assert.deepEqual(sent, [
    { welcome: at(8) },
    { type: 'missed 9' },
    { type: 'missed 12' },
    '13',
    '14',
  ]);
});

test('messages are buffered during an access check, then sent or dropped', async () => {
  const { rooms, sent, lost, subscription, next } = subscriptionRig();
  const begun = subscription.begin();
  (await next()).pass();
  (await next()).pass();
  await begun;
  subscription.recheck();
  rooms.publish('t', message(11));
  assert.equal(sent.length, 1);
  (await next()).pass();
  await turn();
  assert.deepEqual(sent.slice(1), ['11']);
  subscription.recheck();
  rooms.publish('t', message(12));
  // A recheck during a check makes the running check outdated.
  subscription.recheck();
  (await next()).pass();
  (await next()).fail();
  await turn();
  rooms.publish('t', message(13));
  assert.deepEqual([sent.slice(1), lost.length, rooms.size], [['11'], 1, 0]);
});

test('a subscription without access is rejected and gets no messages', async () => {
  const { rooms, sent, subscription, next } = subscriptionRig({ since: startPosition });
  const begun = subscription.begin();
  (await next()).fail();
  await assert.rejects(begun, /no/);
  rooms.publish('t', message(11));
  assert.deepEqual([sent, rooms.size], [[], 0]);
});

const ids = createIds();
const stream = 'collab.chat.v1-core-c1';
const append = async (store: EventStore, ...events: NewEvent[]): Promise<void> => {
  const context = { tenant: 'core', aggregate: { bc: 'collab', type: 'chat', id: 'c1' } };
  await store.append(
    stream,
    events.map((event) => createEnvelope(event, { ...context, eventId: ids.next() })),
  );
};
const timestamp = '2026-11-16T10:00:00.000Z';
const created = chatCreated({
  workspaceId: 'w',
  type: 'discussion',
  title: 'Wheel',
  isPublic: false,
  createdBy: 'zoe',
  timestamp,
});
const posted = (count: number) =>
  messagePosted({ messageId: `m${count}`, chatId: 'c1', authorId: 'zoe', content: 'x', timestamp });

test('live documents contain events that the read model has not applied yet', async () => {
  await using db = openMemory();
  const documents = documentsOf(openMemory().readModels, chatProjection.readModel);
  await append(
    db.store,
    created,
    participantJoined({ userId: 'zoe', role: 'admin' }),
    participantJoined({ userId: 'alex', role: 'member' }),
    participantLeft({ userId: 'alex', role: 'member' }),
  );
  const events = await db.store.readStream(stream).toArray();
  const [first, second, third, fourth] = events;
  assert.ok(first && second && third && fourth);
  const behind = [first, second, third].reduce(
    (document, event) => chatProjection.apply(document, event),
    null as ReturnType<typeof chatProjection.apply>,
  );
  assert.ok(behind);
  await documents.put({ tenant: 'core', id: 'c1', stream, revision: 2 }, behind);
  const names = async (live: ReturnType<typeof createLiveDocuments<typeof behind>>) =>
    (await live.get('core', 'c1'))?.participants.map(({ userId }) => userId);
  const seen = createLiveDocuments(chatProjection, documents);
  for (const event of events) seen.note(event);
  assert.deepEqual(await names(seen), ['zoe']);
  const later = createLiveDocuments(chatProjection, documents);
  assert.deepEqual(await names(later), ['zoe', 'alex']);
  later.note(third);
  later.note(fourth);
  assert.deepEqual(await names(later), ['zoe']);
  // An evicted document is read again, together with events that the read model has not applied yet.
  await documents.put({ tenant: 'core', id: 'c2', stream: 'c2', revision: 0 }, behind);
  const full = createLiveDocuments(chatProjection, documents, { cachedMax: 1, recentMax: 100 });
  assert.deepEqual(await names(full), ['zoe', 'alex']);
  full.note(third);
  full.note(fourth);
  await full.get('core', 'c2');
  assert.deepEqual(await names(full), ['zoe']);
  // The read model has not applied any event of it yet.
  const fresh = createLiveDocuments(
    chatProjection,
    documentsOf(openMemory().readModels, chatProjection.readModel),
  );
  assert.equal(await fresh.get('core', 'c1'), undefined);
  for (const event of events) fresh.note(event);
  assert.deepEqual(await names(fresh), ['zoe']);
  assert.equal(await fresh.get('acme', 'c1'), undefined);
});

test('the feed resumes after a read error and skips an event that it cannot publish', async () => {
  await using db = openMemory();
  const clock = fakeClock();
  let subscriptions = 0;
  const flaky: EventStore = {
    ...db.store,
    async *subscribe(options) {
      subscriptions += 1;
      for await (const item of db.store.subscribe(options)) {
        yield item;
        if (subscriptions === 1 && item.kind === 'events') throw new Error('the line is cut');
      }
    },
  };
  const models = openMemory().readModels;
  const published: string[] = [];
  await using feed = createLiveFeed(
    { store: flaky, clock, observer: silentObserver },
    {
      chats: documentsOf(models, chatProjection.readModel),
      workspaces: documentsOf(models, workspaceProjection.readModel),
      settled: () => Promise.resolve(),
    },
  );
  feed.join(topics.chat('core', 'c1'), (item) => {
    const { message: it } = JSON.parse('text' in item ? item.text : '') as {
      message: { messageId: string };
    };
    if (it.messageId === 'm1') throw new Error('a listener that fails');
    published.push(it.messageId);
  });
  await feed.start();
  await append(db.store, posted(0));
  while (published.length < 1 || clock.sleepers === 0) await turn();
  await append(db.store, posted(1), posted(2));
  await clock.advance(1_000);
  while (published.length < 2) await turn();
  assert.deepEqual([published, subscriptions], [['m0', 'm2'], 2]);
});

test('missed messages of a chat are read after any position, up to the limit', async () => {
  await using db = openMemory();
  await append(db.store, created, ...Array.from({ length: 20 }, (_each, count) => posted(count)));
  const tenants = { has: () => true } as unknown as Parameters<typeof missedInChat>[2];
  const events = await db.store.readStream(stream).toArray();
  const missed = async (since: Position): Promise<number> =>
    (await Array.fromAsync(missedInChat(db.store, { tenant: 'core', id: 'c1', since }, tenants)))
      .length;
  assert.equal(await missed(startPosition), 20);
  for (const { position, revision } of events) assert.equal(await missed(position), 20 - revision);
  const none = missedInChat(db.store, { tenant: 'core', id: 'c2', since: startPosition }, tenants);
  assert.deepEqual(await Array.fromAsync(none), []);
  for (let round = 0; round < 11; round += 1) {
    await append(db.store, ...Array.from({ length: 1_000 }, (_each, count) => posted(count)));
  }
  await assert.rejects(missed(startPosition), (error) => hasCode(error, 'VERSION_CONFLICT'));
});

test('the limiter allows sixty messages per minute for each user of each tenant', async () => {
  const clock = fakeClock();
  const limiter = createMessageLimiter(clock);
  const zoe = { tenant: 'core', userId: 'zoe' };
  for (let count = 1; count <= messageLimits.messages; count += 1) {
    assert.equal(limiter.take(zoe)?.remaining, messageLimits.messages - count);
    await clock.advance(500);
  }
  assert.throws(
    () => limiter.take(zoe),
    (error) => hasCode(error, 'RATE_LIMITED') && error.details['retryAfterSeconds'] === 30,
  );
  assert.equal(limiter.take({ tenant: 'acme', userId: 'zoe' })?.remaining, 59);
  await clock.advance(30_000);
  assert.equal(limiter.take(zoe)?.remaining, 0);
  assert.throws(() => limiter.take(zoe));
  const two = createMessageLimiter(clock, 2);
  assert.deepEqual([two.take(zoe)?.remaining, two.take(zoe)?.remaining], [1, 0]);
  assert.throws(() => two.take(zoe));
  assert.equal(createMessageLimiter(clock, Infinity).take(zoe), undefined);
});

test('reasons of rejected commands map to statuses', () => {
  const statusAndCode = (reason: string): unknown[] => {
    const { status, code } = collabError({
      type: 'about:blank',
      title: '',
      status: 422,
      code: 'COMMAND_REJECTED',
      detail: '',
      remedy: '',
      retryable: false,
      details: { reason },
      requestId: 'r',
    });
    return [status, code];
  };
  assert.deepEqual(statusAndCode('not-a-participant'), [404, 'NOT_FOUND']);
  assert.deepEqual(statusAndCode('too-late'), [403, 'FORBIDDEN']);
  assert.deepEqual(statusAndCode('last-admin'), [409, 'CONFLICT']);
});
