import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { aborted } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { eventFeed, type FeedOptions, type FeedSource } from './event-feed.ts';
import type { FeedItem } from './event-store.ts';
import { toPosition } from './position.ts';
import { toRecordedEvent } from './recorded-event.ts';

describe('eventFeed', () => {
  test('prefetches exactly one page', async () => {
    const source = scripted([page(1), page(2), page(3), page(4, { end: true })]);
    const feed = start(source);
    for (const [pulled, reads] of [
      [1, 2],
      [2, 3],
      [3, 4],
      [4, 4],
    ] as const) {
      assert.equal((await feed.next()).value?.kind, 'events');
      await new Promise(setImmediate);
      assert.deepEqual([pulled, source.reads.length], [pulled, reads]);
    }
    assert.deepEqual(source.reads, [0, 1, 2, 3]);
    await feed.return();
  });

  test('a failed prefetch rejects when its page is requested, not before', async () => {
    const failure = new MillraceError('STORE_CORRUPT', 'torn');
    const source = scripted([page(1), failure]);
    const feed = start(source);
    assert.equal((await feed.next()).value?.kind, 'events');
    await new Promise(setImmediate);
    await assert.rejects(feed.next(), failure);
    assert.equal((await feed.next()).done, true);
  });

  test('a failed prefetch after the consumer left is ignored', async () => {
    const source = scripted([page(1), new Error('prefetch failed')]);
    for await (const item of start(source)) {
      assert.equal(item.kind, 'events');
      break;
    }
    await new Promise(setImmediate);
  });

  test('exiting the loop aborts the pending read', async () => {
    const source = scripted([page(1), 'never']);
    const feed = start(source);
    await feed.next();
    assert.equal(source.signals.at(-1)?.aborted, false);
    await feed.return();
    assert.equal(source.signals.at(-1)?.aborted, true);
  });

  test('wake-ups without new events emit nothing', async () => {
    const nothing = page(1, { events: 0, end: true });
    const source = scripted([page(1, { end: true }), nothing, nothing, page(2, { end: true })]);
    const feed = start(source);
    const kinds: unknown[] = [];
    for (let item = 0; item < 3; item += 1) kinds.push((await feed.next()).value?.kind);
    assert.deepEqual(kinds, ['events', 'caughtUp', 'events']);
    assert.deepEqual(source.waits, [1, 1, 1]);
    await feed.return();
  });

  test('a checkpoint is emitted after enough events without a match since the last item', async () => {
    const source = scripted([
      page(50, { events: 0 }),
      page(99, { events: 0 }),
      page(120, { events: 0 }),
      page(200),
      page(290, { events: 0 }),
      page(310, { events: 0 }),
      page(330, { events: 0, end: true }),
    ]);
    const items = await take(start(source, { checkpointEvery: 100 }), 4);
    assert.deepEqual(
      items.map(({ kind, position }) => [kind, Number.parseInt(position, 16)]),
      [
        ['checkpoint', 120],
        ['events', 200],
        ['checkpoint', 310],
        ['caughtUp', 330],
      ],
    );
  });

  test('a fellBehind item has the last delivered position', async () => {
    const source = scripted([page(1, { end: true }), page(5), page(9, { end: true })]);
    const items = await take(start(source), 6);
    assert.deepEqual(
      items.map(({ kind, position }) => [kind, Number.parseInt(position, 16)]),
      [
        ['events', 1],
        ['caughtUp', 1],
        ['fellBehind', 1],
        ['events', 5],
        ['events', 9],
        ['caughtUp', 9],
      ],
    );
  });

  test('the feed ends without an error for every kind of abort error', async () => {
    for (const error of [aborted(), new DOMException('stop', 'AbortError')]) {
      const exit = new AbortController();
      const source = scripted([page(1, { end: true })], async () => {
        exit.abort(new Error('a custom reason'));
        throw error;
      });
      const items: FeedItem[] = [];
      for await (const item of start(source, { signal: exit.signal })) items.push(item);
      assert.equal(items.length, 2);
    }
  });

  test('a failure during an abort is still thrown', async () => {
    const exit = new AbortController();
    const failure = new MillraceError('STORE_CORRUPT', 'torn');
    const source = scripted([page(1, { end: true })], async () => {
      exit.abort();
      throw failure;
    });
    const feed = start(source, { signal: exit.signal });
    await take(feed, 2);
    await assert.rejects(feed.next(), failure);
  });

  test('an unavailable store is retried from the same position', async () => {
    const away = new MillraceError('STORE_UNAVAILABLE', 'away');
    const source = scripted([page(1), away, away, page(2, { end: true })]);
    const pauses: unknown[] = [];
    const feed = start(source, {
      async pause(failures, error) {
        pauses.push([failures, error]);
      },
    });
    const items = await take(feed, 3);
    assert.deepEqual(
      items.map(({ kind }) => kind),
      ['events', 'events', 'caughtUp'],
    );
    assert.deepEqual(source.reads, [0, 1, 1, 1]);
    assert.deepEqual(pauses, [
      [1, away],
      [2, away],
    ]);
    await feed.return();
  });

  test('an abort while the store is unavailable ends the feed without an error', async () => {
    const exit = new AbortController();
    const source = scripted([new MillraceError('STORE_UNAVAILABLE', 'away')]);
    const feed = start(source, {
      signal: exit.signal,
      async pause(_failures, _error, signal) {
        exit.abort();
        throw aborted(signal);
      },
    });
    assert.equal((await feed.next()).done, true);
  });

  test('a wait that fails without an abort fails the feed', async () => {
    const source = scripted([page(1, { end: true })], () => Promise.reject(aborted()));
    const feed = start(source);
    await take(feed, 2);
    await assert.rejects(feed.next(), { code: 'ABORTED' });
  });

  test('an abort between two pages ends the feed even if the engine ignores the signal', async () => {
    const exit = new AbortController();
    const source = scripted([page(1), page(2), page(3), page(4, { end: true })]);
    const feed = start(source, { signal: exit.signal });
    await feed.next();
    exit.abort();
    assert.equal((await feed.next()).done, true);
    assert.ok(source.reads.length <= 2);
  });
});

type FeedPage = Awaited<ReturnType<FeedSource['read']>>;
type Step = FeedPage | Error | 'never';

interface ScriptedSource extends FeedSource {
  readonly reads: number[];
  readonly waits: number[];
  readonly signals: AbortSignal[];
}

function scripted(
  steps: readonly Step[],
  whenMore: FeedSource['whenMore'] = async () => undefined,
): ScriptedSource {
  const reads: number[] = [];
  const waits: number[] = [];
  const signals: AbortSignal[] = [];
  return {
    reads,
    waits,
    signals,
    async read(after, signal) {
      const step = steps[reads.length];
      reads.push(after);
      signals.push(signal);
      assert.ok(step !== undefined, 'read more than there is');
      if (step instanceof Error) throw step;
      return step === 'never' ? new Promise(() => undefined) : step;
    },
    async whenMore(after, signal) {
      waits.push(after);
      await whenMore(after, signal);
    },
  };
}

function page(
  considered: number,
  { events = 1, end = false }: { readonly events?: number; readonly end?: boolean } = {},
): FeedPage {
  const recorded = toRecordedEvent({
    sequence: considered,
    stream: 's',
    revision: considered,
    eventId: `e-${considered}`,
    type: 'account.opened.v1',
    recordedAtMs: 0,
    payload: '{}',
    meta: '{}',
  });
  assert.equal(recorded.position, toPosition(considered));
  return { bytes: 0, events: events === 0 ? [] : [recorded], considered, end };
}

function start(source: FeedSource, options: Partial<FeedOptions> = {}) {
  const pause = (): Promise<void> => assert.fail('paused without a reason');
  return eventFeed(source, {
    after: 0,
    signal: undefined,
    checkpointEvery: 1_000,
    pause,
    ...options,
  });
}

async function take(
  feed: AsyncGenerator<FeedItem, void, undefined>,
  count: number,
): Promise<FeedItem[]> {
  const items: FeedItem[] = [];
  while (items.length < count) {
    const { done, value } = await feed.next();
    assert.ok(done !== true);
    items.push(value);
  }
  return items;
}
