// The stand-in for a real EventStoreDB, seen by the official client: one test per switch, with the behaviour that was
// measured on a real server.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { KurrentDBClient, ResolvedEvent } from '@kurrent/kurrentdb-client';
import type { Fidelity, Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn, type StandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';
import { createWorkspace } from '../store/rig.ts';
import {
  collect,
  event,
  events,
  idsOf,
  kurrentClient,
  rejectsWith,
  unique,
  type OfficialClient,
} from './official-clients.ts';

const kind = await kurrentClient();
const running = new AsyncDisposableStack();
after(() => running.disposeAsync());

interface Opened extends OfficialClient {
  readonly standIn: StandIn;
}

async function open(
  preset: Preset,
  switches: Partial<Fidelity> = {},
  parameters = '',
): Promise<Opened> {
  const standIn = running.use(await startStandIn({ preset, switches }));
  return { standIn, ...running.use(kind.connect(`${standIn.url}${parameters}`)) };
}

describe('positions', () => {
  test('start high and have gaps of 100 to 2,000', async () => {
    const { append, api } = await open('23.10', { systemProjections: false });
    const stream = unique();
    const appended = [];
    for (const each of events(30)) appended.push((await append(stream, each)).position?.commit);
    const read = positionsOf(await collect(api.readAll()));
    assert.deepEqual(read, appended);
    assert.ok(Number(read[0]) > 2 ** 32);
    const gaps = read.slice(1).map((position, index) => Number(position - (read[index] ?? 0n)));
    assert.ok(
      gaps.every((gap) => gap >= 100 && gap <= 2_000),
      gaps.join(),
    );
  });

  test('23.10 refuses a read and a subscription from a position that is no record', async () => {
    const { append, api } = await open('23.10');
    const { position } = await append(unique(), events(3));
    const fromPosition = after1(position);
    await assert.rejects(collect(api.readAll({ fromPosition })), /seriously wrong|unavailable/i);
    const refused = api.subscribeToAll({ fromPosition });
    await rejectsWith('unavailable', () => collect(refused));
  });

  test('24.10 answers them with the next record', async () => {
    const { append, api } = await open('24.10', { systemProjections: false });
    const stream = unique();
    const first = await append(stream, event());
    const next = event();
    await append(stream, next);
    const fromPosition = after1(first.position);
    assert.deepEqual(idsOf(await collect(api.readAll({ fromPosition }))), [next.id]);
    const followed = await collect(api.subscribeToAll({ fromPosition }), 1);
    assert.deepEqual(idsOf(followed), [next.id]);
  });

  test('a read backwards starts before its position', async () => {
    const { append, api } = await open('24.10', { systemProjections: false });
    const stream = unique();
    const [one, two] = events(2);
    assert.ok(one !== undefined && two !== undefined);
    await append(stream, one);
    const { position } = await append(stream, two);
    assert.ok(position !== undefined);
    const before = async (fromPosition: typeof position): Promise<string[]> =>
      idsOf(await collect(api.readAll({ direction: 'backwards', fromPosition })));
    assert.deepEqual(await before(position), [one.id]);
    assert.deepEqual(await before(after1(position)), [two.id, one.id]);
  });
});

describe('appends', () => {
  test('a restart forgets the ids of appends with any, not those with an exact revision', async () => {
    const { standIn, append, api } = await open('23.10');
    const [any, exact] = [unique(), unique()];
    const sent = event();
    await append(any, sent);
    await append(any, sent);
    await append(exact, sent, 'no_stream');
    assert.equal((await collect(api.readStream(any))).length, 1);
    await standIn.restart();
    await again(() => append(any, sent));
    await append(exact, sent, 'no_stream');
    await using fresh = kind.connect(standIn.url);
    assert.deepEqual(idsOf(await collect(fresh.api.readStream(any))), [sent.id, sent.id]);
    assert.equal((await collect(fresh.api.readStream(exact))).length, 1);
  });

  test('an append equal to one that is not indexed yet is not answered', async () => {
    const { standIn, append, api } = await open('23.10');
    const stream = unique();
    const sent = event();
    const release = standIn.holdIndex();
    const first = append(stream, sent);
    await until(async () => (await standIn.store.streamInfo(stream)) !== undefined);
    await rejectsWith('deadline-exceeded', () =>
      api.appendToStream(stream, sent, { deadline: 200 }),
    );
    release();
    const { position } = await first;
    assert.deepEqual((await append(stream, sent)).position, position);
  });

  test('fifty equal appends at once: some are not answered', async () => {
    const { api } = await open('24.10');
    const stream = unique();
    const sent = event();
    const all = await Promise.allSettled(
      Array.from({ length: 50 }, () => api.appendToStream(stream, sent, { deadline: 300 })),
    );
    const rejected = all.filter(({ status }) => status === 'rejected').length;
    assert.ok(rejected > 0 && rejected < 50, `${rejected} of 50`);
    assert.equal((await collect(api.readStream(stream))).length, 1);
  });

  test('23.10 does not answer known ids in another order with any', async () => {
    const { append, api } = await open('23.10');
    const stream = unique();
    const sent = events(2);
    await append(stream, sent);
    await rejectsWith('deadline-exceeded', () =>
      api.appendToStream(stream, sent.toReversed(), { deadline: 200 }),
    );
    assert.equal((await append(stream, sent)).nextExpectedRevision, 1n);
  });

  test('the server has no multi-stream append', async () => {
    const { api } = await open('24.10');
    await assert.rejects(
      api.multiStreamAppend([
        { streamName: unique(), expectedState: 'any', events: [event()] },
        { streamName: unique(), expectedState: 'any', events: [event()] },
      ]),
    );
  });
});

describe('subscriptions', () => {
  /** A scavenged position, and the events after it. */
  async function scavenged(opened: Opened): Promise<{
    readonly checkpoint: { readonly commit: bigint; readonly prepare: bigint };
    readonly later: readonly string[];
  }> {
    const { append, api, standIn } = opened;
    const [first, second] = [unique('a'), unique('b')];
    const { position } = await append(first, events(10));
    const later = events(20);
    await append(second, later);
    await append(first, event());
    await api.setStreamMetadata(first, { maxCount: 1 });
    assert.equal(standIn.scavenge(), 10);
    assert.ok(position !== undefined);
    return { checkpoint: position, later: later.map(({ id }) => id) };
  }

  const filter = { filterOn: 'streamName' as const, prefixes: ['b'], checkpointInterval: 1 };

  test('23.10 skips the first event of a filtered subscription after a scavenged position', async () => {
    const opened = await open('23.10', { systemProjections: false });
    const { checkpoint, later } = await scavenged(opened);
    const read = await collect(opened.api.readAll({ fromPosition: checkpoint, filter }));
    assert.deepEqual(idsOf(read), later);
    const followed = opened.api.subscribeToAll({ fromPosition: checkpoint, filter });
    assert.deepEqual(idsOf(await collect(followed, 19)), later.slice(1));
    const unfiltered = opened.api.subscribeToAll({ fromPosition: checkpoint });
    assert.deepEqual(idsOf(await collect(unfiltered, 20)), later);
  });

  test('24.10 does not', async () => {
    const opened = await open('24.10', { systemProjections: false });
    const { checkpoint, later } = await scavenged(opened);
    const followed = opened.api.subscribeToAll({ fromPosition: checkpoint, filter });
    assert.deepEqual(idsOf(await collect(followed, 20)), later);
  });

  test('24.10 sends checkpoints before caughtUp, at the start position and at 2^64 − 1', async () => {
    const { append, api } = await open('24.10');
    const { position } = await append(unique('b'), events(3));
    assert.ok(position !== undefined);
    const none = 2n ** 64n - 1n;
    assert.deepEqual(await progress(api, position), [position.commit, none, 'caughtUp']);
    assert.deepEqual(await progress(api, 'start'), [none, 'caughtUp']);
  });

  test('23.10 does not', async () => {
    const { append, api } = await open('23.10');
    const { position } = await append(unique('b'), events(3));
    assert.ok(position !== undefined);
    assert.deepEqual(await progress(api, position), ['caughtUp']);
  });

  async function progress(
    api: KurrentDBClient,
    fromPosition: 'start' | { readonly commit: bigint; readonly prepare: bigint },
  ): Promise<readonly (bigint | 'caughtUp')[]> {
    const seen: (bigint | 'caughtUp')[] = [];
    const subscription = api.subscribeToAll({
      fromPosition,
      filter: {
        filterOn: 'eventType',
        prefixes: ['nothing'],
        checkpointInterval: 1,
        maxSearchWindow: 1_000,
        checkpointReached: (_of, { commit }) => void seen.push(commit),
      },
    });
    await new Promise<void>((resolve, reject) => {
      subscription.on('caughtUp', () => resolve());
      subscription.on('error', reject);
      subscription.resume();
    });
    await subscription.unsubscribe();
    return [...seen, 'caughtUp'];
  }
});

describe('starting', () => {
  test('calls are answered with "Server Is Not Ready" until the gate opens', async () => {
    const { standIn, append, api } = await open('23.10');
    const stream = unique();
    const ready = standIn.holdReady();
    // The native connection of reads does not pass the text on.
    const refused = /Server Is Not Ready|UnavailableError/;
    await assert.rejects(append(stream, event()), refused);
    await assert.rejects(collect(api.readStream(stream)), refused);
    await assert.rejects(collect(api.subscribeToAll()), refused);
    await assert.rejects(api.deleteStream(stream), refused);
    assert.equal(standIn.refusedCalls, 4);
    ready();
    await again(() => append(stream, event()));
    await using fresh = kind.connect(standIn.url);
    assert.equal((await collect(fresh.api.readStream(stream))).length, 1);
  });

  test('the first calls after each start are refused', async () => {
    const { standIn, append } = await open('23.10', { notReadyCalls: 2 });
    for (let start = 1; start <= 2; start += 1) {
      await again(() => append(unique(), event()));
      assert.equal(standIn.refusedCalls, 2 * start);
      await standIn.restart();
    }
  });
});

describe('deletions', () => {
  test('a second deletion restores the stream', async () => {
    const { standIn, append, api } = await open('23.10');
    const stream = unique();
    await append(stream, events(3));
    await api.deleteStream(stream);
    await rejectsWith('stream-not-found', () => collect(api.readStream(stream)));
    await api.deleteStream(stream);
    assert.deepEqual(await collect(api.readStream(stream)), []);
    assert.deepEqual((await standIn.store.streamInfo(stream))?.metadata, { truncateBefore: 3 });
  });

  test('metadata that deletes a deleted stream restores it, too', async () => {
    const { append, api } = await open('24.10');
    const stream = unique();
    await append(stream, events(3));
    for (const isThere of [false, true]) {
      await append(`$$${stream}`, deletion());
      const read = collect(api.readStream(stream));
      if (isThere) assert.deepEqual(await read, []);
      else await rejectsWith('stream-not-found', () => read);
    }
    assert.equal((await api.getStreamMetadata(stream)).metadata?.truncateBefore, 3);
  });

  test('the deletion of a stream without events is refused', async () => {
    const { api } = await open('23.10');
    for (const expectedRevision of ['any', 'no_stream'] as const) {
      await rejectsWith('wrong-expected-version', () =>
        api.deleteStream(unique(), { expectedRevision }),
      );
    }
  });

  test('a deletion drops other metadata, and an append writes metadata that hides the old events', async () => {
    const { standIn, append, api } = await open('23.10');
    const stream = unique();
    await append(stream, events(3));
    await api.setStreamMetadata(stream, { maxCount: 5 });
    await api.deleteStream(stream);
    await append(stream, event());
    assert.deepEqual((await api.getStreamMetadata(stream)).metadata, { truncateBefore: 3 });
    assert.equal((await standIn.store.streamInfo(`$$${stream}`))?.revision, 2);
    assert.deepEqual(
      (await collect(api.readStream(stream))).map((read) => read.event?.revision),
      [3n],
    );
  });

  test('a late repeat on a deleted stream succeeds without a position', async () => {
    const { append, api } = await open('23.10');
    const stream = unique();
    const sent = events(2);
    assert.notEqual((await append(stream, sent)).position, undefined);
    await api.deleteStream(stream);
    for (const expected of ['any', 'no_stream'] as const) {
      const { success, position } = await append(stream, sent, expected);
      assert.deepEqual({ success, position }, { success: true, position: undefined });
    }
  });
});

test('system projections write links and statistics between the events', async () => {
  const { append, api } = await open('23.10');
  const stream = `order-${unique()}`;
  await append(stream, events(25, { type: 'Placed', metadata: { $correlationId: 'flow-1' } }));
  await append(stream, event({ type: 'Placed' }));
  const all = (await collect(api.readAll())).map((each) => each.event?.streamId ?? '');
  const count = (name: string): number => all.filter((streamId) => streamId === name).length;
  assert.deepEqual(
    [stream, '$ce-order', '$et-Placed', '$bc-flow-1', '$streams', '$category-order'].map(count),
    [26, 26, 26, 25, 1, 1],
  );
  assert.equal(all.filter((streamId) => streamId.startsWith('$stats-')).length, 1);
});

describe('a cluster', () => {
  test('reads go to another node than appends and subscriptions, which may lag', async () => {
    const { standIn, append, api } = await open('cluster');
    const stream = unique();
    await append(stream, event());
    const release = standIn.nodes.at(-1)?.holdReplication();
    await append(stream, event());
    assert.equal((await collect(api.subscribeToStream(stream), 2)).length, 2);
    assert.equal((await collect(api.readStream(stream))).length, 1);
    release?.();
    assert.equal((await collect(api.readStream(stream))).length, 2);
  });

  test('a follower refuses reads that require the leader, and accepts appends', async () => {
    const { standIn, append, api } = await open('cluster');
    const stream = unique();
    const { position } = await append(stream, event());
    assert.ok(position !== undefined);
    await rejectsWith('not-leader', () =>
      collect(api.readAll({ fromPosition: position, maxCount: 1, requiresLeader: true })),
    );
    assert.equal((await collect(api.readStream(stream))).length, 1);
    assert.equal((await standIn.store.readStream(stream).toArray()).length, 1);
  });

  test('a client that prefers the leader finds it', async () => {
    const { standIn, append, api } = await open('cluster', { splitsConnections: false });
    const stream = unique();
    for (const node of standIn.nodes.slice(1)) node.holdReplication();
    await append(stream, events(3));
    assert.equal((await collect(api.readStream(stream))).length, 3);
  });

  test('a frozen leader answers nothing until it is awake', async () => {
    const { standIn, append, api } = await open('cluster');
    const stream = unique();
    await append(stream, event());
    const thaw = standIn.nodes[0]?.freeze();
    const late = append(stream, event());
    assert.equal((await collect(api.readStream(stream))).length, 1);
    thaw?.();
    assert.equal((await late).nextExpectedRevision, 1n);
    assert.equal((await collect(api.readStream(stream))).length, 2);
  });

  test('another node can become the leader, with everything that was written', async () => {
    const { standIn, append } = await open('cluster', { splitsConnections: false });
    const stream = unique();
    standIn.nodes[1]?.holdReplication();
    await append(stream, events(3));
    standIn.nodes[0]?.freeze();
    standIn.elect(1);
    await using fresh = kind.connect(standIn.nodes[1]?.url ?? '');
    await fresh.append(stream, event(), 2n);
    assert.equal((await standIn.store.readStream(stream).toArray()).length, 4);
  });
});

test('a log in a file survives the process', async () => {
  await using folder = await createWorkspace();
  const file = join(folder.folder, 'log');
  const stream = unique();
  const sent = events(3);
  for (const isLater of [false, true]) {
    await using standIn = await startStandIn({ preset: 'cluster', file });
    await using client = kind.connect(standIn.url);
    if (!isLater) {
      await client.append(stream, sent);
      await client.api.setStreamMetadata(stream, { maxCount: 1 });
      standIn.scavenge();
    }
    assert.deepEqual(idsOf(await collect(client.api.readStream(stream))), [sent[2]?.id]);
    const all = await standIn.store.readAll({ filter: { streamPrefixes: [stream] } }).toArray();
    assert.equal(all.length, 1);
  }
});

function positionsOf(read: readonly ResolvedEvent[]): bigint[] {
  return read.map((each) => each.event?.position?.commit ?? 0n);
}

function after1(position: { readonly commit: bigint } | undefined) {
  const at = (position?.commit ?? 0n) + 1n;
  return { commit: at, prepare: at };
}

function deletion() {
  const text = '{"$tb":9223372036854775807}';
  return { ...event({ type: '$metadata' }), data: JSON.parse(text) as { $tb: number } };
}

/** The client reconnects at its second attempt. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === 200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await new Promise((resolve) => setImmediate(resolve));
}
