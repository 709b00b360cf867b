// Live subscriptions: stored events, then new ones, once and in order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Position } from '@kurrent/kurrentdb-client';
import type { ClientCases } from './client-cases.ts';
import { confirmed, followed } from './follow.ts';
import { event, events, idsOf, revisionsOf, unique } from './official-clients.ts';
import { filterOn } from './read-all-cases.ts';

export const subscribeCases: ClientCases = ({ api, append }) => {
  test('a subscription to a stream gets stored events, then new ones', async () => {
    const stream = unique();
    const sent = events(6);
    await append(stream, sent.slice(0, 3));
    await using follower = followed(api.subscribeToStream(stream));
    await follower.count(3);
    for (const each of sent.slice(3)) await append(stream, each);
    assert.deepEqual(idsOf(await follower.count(6)), idsOf(sent));
    assert.deepEqual(revisionsOf(follower.seen), [0, 1, 2, 3, 4, 5]);
  });

  test('a subscription to a stream starts after the given revision', async () => {
    const stream = unique();
    await append(stream, events(5));
    await using follower = followed(api.subscribeToStream(stream, { fromRevision: 2n }));
    assert.deepEqual(revisionsOf(await follower.count(2)), [3, 4]);
  });

  test('a subscription to a stream from the end gets only new events', async () => {
    const stream = unique();
    await append(stream, events(3));
    const opened = api.subscribeToStream(stream, { fromRevision: 'end' });
    await using follower = followed(opened);
    await confirmed(opened);
    await append(stream, event());
    assert.deepEqual(revisionsOf(await follower.count(1)), [3]);
  });

  test('an unknown stream can be followed before its first event', async () => {
    const stream = unique();
    const opened = api.subscribeToStream(stream);
    await using follower = followed(opened);
    await confirmed(opened);
    await append(stream, events(2));
    assert.deepEqual(revisionsOf(await follower.count(2)), [0, 1]);
  });

  test('a subscription to a stream gets no events of other streams', async () => {
    const [stream, other] = [unique(), unique()];
    await using follower = followed(api.subscribeToStream(stream));
    for (let round = 0; round < 10; round += 1) {
      await append(other, events(3));
      await append(stream, event());
    }
    const seen = await follower.count(10);
    assert.ok(seen.every((each) => each.event?.streamId === stream));
    assert.deepEqual(revisionsOf(seen), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('a tombstone ends the subscription to its stream as deleted', async () => {
    const stream = unique();
    await append(stream, event());
    await using follower = followed(api.subscribeToStream(stream));
    await follower.count(1);
    await api.tombstoneStream(stream);
    const error = (await follower.failed()) as { readonly type?: string };
    assert.equal(error.type, 'stream-deleted');
  });

  test('a subscription to a stream reports when it has caught up', async () => {
    const stream = unique();
    await append(stream, events(50));
    await using follower = followed(api.subscribeToStream(stream));
    await follower.caughtUp();
    assert.equal(follower.seen.length, 50);
  });

  test('a category is followed with resolved links', async () => {
    const category = unique('category');
    const sent = events(4);
    await append(`${category}-1`, sent.slice(0, 2));
    await using follower = followed(
      api.subscribeToStream(`$ce-${category}`, { resolveLinkTos: true }),
    );
    await follower.count(2);
    await append(`${category}-2`, sent.slice(2));
    const seen = await follower.count(4);
    assert.deepEqual(idsOf(seen), idsOf(sent));
    assert.ok(seen.every(({ link }) => link?.streamId === `$ce-${category}`));
  });

  test('unsubscribing stops the events, and the client stays usable', async () => {
    const stream = unique();
    const opened = api.subscribeToStream(stream);
    const follower = followed(opened);
    await append(stream, event());
    await follower.count(1);
    await opened.unsubscribe();
    await append(stream, events(3));
    await using other = followed(api.subscribeToStream(stream));
    await other.count(4);
    assert.equal(follower.seen.length, 1);
  });

  test('a subscription to $all gets stored events in order, then new ones', async () => {
    const streams = [unique(), unique()];
    const sent = events(6);
    await append(streams[0] ?? '', sent.slice(0, 2));
    await using follower = followed(api.subscribeToAll());
    await follower.caughtUp();
    for (const [index, each] of sent.slice(2).entries())
      await append(streams[index % 2] ?? '', each);
    const mine = () => follower.seen.filter((each) => streams.includes(each.event?.streamId ?? ''));
    while (mine().length < 6) await follower.count(follower.seen.length + 1);
    assert.deepEqual(idsOf(mine()), idsOf(sent));
    const commits = follower.seen.map((each) => each.event?.position?.commit ?? 0n);
    assert.deepEqual(
      commits,
      commits.toSorted((a, b) => Number(a - b)),
    );
  });

  test('a subscription to $all starts after the given position', async () => {
    const sent = events(3);
    const { position } = await append(unique(), sent[0] ?? event());
    await append(unique(), sent.slice(1));
    await using follower = followed(api.subscribeToAll({ fromPosition: position ?? 'end' }));
    assert.deepEqual(idsOf(await follower.count(2)), idsOf(sent.slice(1)));
  });

  test('a subscription to $all from the end gets only new events', async () => {
    await append(unique(), events(3));
    const opened = api.subscribeToAll({ fromPosition: 'end' });
    await using follower = followed(opened);
    await confirmed(opened);
    const sent = event();
    await append(unique(), sent);
    assert.deepEqual(idsOf(await follower.count(1)), [sent.id]);
  });

  for (const [what, filterOf] of [
    ['prefixes of the type', (word: string) => filterOn('eventType', { prefixes: [word] })],
    ['a pattern of the type', (word: string) => filterOn('eventType', { regex: `^${word}` })],
    ['prefixes of the stream', (word: string) => filterOn('streamName', { prefixes: [word] })],
    ['a pattern of the stream', (word: string) => filterOn('streamName', { regex: `^${word}-.$` })],
  ] as const) {
    test(`a subscription to $all filtered by ${what} gets only matching events, before and after catching up`, async () => {
      const word = unique('w');
      const sent = events(4, { type: `${word}Done` });
      const appendOne = async (index: number): Promise<void> => {
        await append(unique(), event());
        await append(`${word}-${index}`, sent[index] ?? event());
      };
      await appendOne(0);
      await appendOne(1);
      await using follower = followed(api.subscribeToAll({ filter: filterOf(word) }));
      await follower.count(2);
      await appendOne(2);
      await appendOne(3);
      assert.deepEqual(idsOf(await follower.count(4)), idsOf(sent));
    });
  }

  test('a filtered subscription to $all reports its progress although no event matches', async () => {
    const reached = Promise.withResolvers<Position>();
    const checkpointReached = (_subscription: unknown, position: Position): void =>
      reached.resolve(position);
    const filter = {
      ...filterOn('eventType', { prefixes: [unique('Nothing')] }),
      maxSearchWindow: 10,
      checkpointReached,
    };
    for (let round = 0; round < 5; round += 1) await append(unique(), events(20));
    await using follower = followed(api.subscribeToAll({ filter }));
    const position = await reached.promise;
    assert.ok(position.commit > 0n);
    assert.equal(follower.seen.length, 0);
  });

  test('a filtered subscription to $all resumes from a checkpoint without a gap', async () => {
    const type = unique('T');
    const reached = Promise.withResolvers<Position>();
    const filter = filterOn('eventType', { prefixes: [type] });
    for (let round = 0; round < 5; round += 1) await append(unique(), events(20));
    const first = followed(
      api.subscribeToAll({
        filter: {
          ...filter,
          maxSearchWindow: 10,
          checkpointReached: (_subscription, position) => reached.resolve(position),
        },
      }),
    );
    const fromPosition = await reached.promise;
    await first[Symbol.asyncDispose]();
    const sent = events(3, { type });
    await append(unique(), sent);
    await using second = followed(api.subscribeToAll({ filter, fromPosition }));
    assert.deepEqual(idsOf(await second.count(3)), idsOf(sent));
  });

  test('a slow consumer slows the server down and gets all events in order', async () => {
    const stream = unique();
    const sent = events(3_000);
    for (let at = 0; at < sent.length; at += 1_000) {
      await append(stream, sent.slice(at, at + 1_000));
    }
    const opened = api.subscribeToStream(stream);
    const seen: string[] = [];
    for await (const each of opened) {
      seen.push(each.event?.id ?? '');
      // Long enough to fill the buffers between server and client.
      if (seen.length % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      if (seen.length === sent.length) break;
    }
    assert.deepEqual(seen, idsOf(sent));
  });

  test('twenty subscriptions to one stream get all events', async () => {
    const stream = unique();
    const followers = Array.from({ length: 20 }, () => followed(api.subscribeToStream(stream)));
    const sent = events(20);
    for (const each of sent) await append(stream, each);
    for (const follower of followers) {
      assert.deepEqual(idsOf(await follower.count(20)), idsOf(sent));
      await follower[Symbol.asyncDispose]();
    }
  });

  test('no event is lost or duplicated while eight writers append', async () => {
    const category = unique('c');
    await using follower = followed(
      api.subscribeToAll({ filter: filterOn('streamName', { prefixes: [category] }) }),
    );
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let round = 0; round < 25; round += 1) await append(`${category}-${writer}`, event());
      }),
    );
    const seen = await follower.count(200);
    assert.equal(new Set(idsOf(seen)).size, 200);
    for (let writer = 0; writer < 8; writer += 1) {
      const own = seen.filter((each) => each.event?.streamId === `${category}-${writer}`);
      assert.deepEqual(
        revisionsOf(own),
        Array.from({ length: 25 }, (_, index) => index),
      );
    }
  });
};
