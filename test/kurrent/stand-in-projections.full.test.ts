// Projections and exports on the stand-in for a real EventStoreDB: positions with gaps, and nodes that lag.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openKurrent } from '../../src/engines/kurrentdb/index.ts';
import { openMemory, type MemoryEngine } from '../../src/engines/memory/index.ts';
import { exportEvents } from '../../src/platform/index.ts';
import {
  documentsOf,
  projection,
  readModel,
  rebuildProjection,
  startProjection,
  waitForProjection,
  type ProjectionRoles,
} from '../../src/projections/index.ts';
import {
  parsePosition,
  type EventFilter,
  type EventStore,
  type Position,
} from '../../src/store/index.ts';
import { subscriptionAdmin } from '../../src/subscriptions/index.ts';
import {
  idsOf,
  newEvent,
  newEvents,
  newStream,
  unique,
} from '../../src/testing/conformance/store/fixture.ts';
import type { Preset } from '../../src/testing/kurrent-stand-in/fidelity.ts';
import { startStandIn, type StandIn } from '../../src/testing/kurrent-stand-in/stand-in.ts';

const opened = new AsyncDisposableStack();
after(() => opened.disposeAsync());

async function serve(preset: Preset): Promise<StandIn> {
  return opened.use(await startStandIn({ preset }));
}

interface Count {
  readonly events: number;
}

const counts = projection({
  name: 'sub:banking:counts:v1',
  readModel: readModel<Count>({ bc: 'banking', aggregate: 'account', version: 1 }),
  on: { 'account.credited.v1': (before) => ({ events: (before?.events ?? 0) + 1 }) },
});

const idOf = (stream: string): string => stream.slice('banking.account.v1-core-'.length);

function rolesOf(store: EventStore): ProjectionRoles & Pick<MemoryEngine, 'readModelVersions'> {
  const { subscriptions, readModels, readModelVersions } = opened.use(openMemory());
  return { store, subscriptions, readModels, readModelVersions };
}

async function countOf(roles: ProjectionRoles, stream: string): Promise<number | undefined> {
  const found = await documentsOf(roles.readModels, counts.readModel).get('core', idOf(stream));
  return found?.document.events;
}

for (const preset of ['23.10', '24.10'] as const) {
  test(`a projection becomes ready, and waits and its lag use positions of the store: ${preset}`, async ({
    signal,
  }) => {
    const server = await serve(preset);
    await using db = await openKurrent(server.url);
    const { store } = db;
    const roles = rolesOf(store);
    const stream = newStream();
    await store.append(stream, newEvents(20));
    // The last events before the start are not those of the projection.
    await store.append(newStream('banking.transfer.v1'), newEvents(3));
    const runner = await startProjection(roles, counts);
    await runner.whenCaughtUp(signal);
    const [version] = await roles.readModelVersions.list();
    assert.equal(version?.status, 'ready');
    for (let added = 1; added <= 5; added += 1) {
      const { position } = await store.append(stream, [newEvent()]);
      await runner.waitFor(position, { signal });
      assert.equal(await countOf(roles, stream), 20 + added);
      // A position of an event that the projection does not read.
      const other = await store.append(newStream('banking.transfer.v1'), newEvents(2));
      await runner.waitFor(other.position, { signal });
    }
    const { position } = await store.append(stream, [newEvent()]);
    await waitForProjection(roles, counts, position, { signal });
    assert.equal(await countOf(roles, stream), 26);
    const { behind, unit, seconds } = await runner.lag();
    assert.deepEqual({ behind, unit, seconds }, { behind: 0, unit: 'bytes', seconds: 0 });
    await runner.stop();
    await store.append(stream, newEvents(2));
    const late = await subscriptionAdmin(roles).lag(counts.name);
    assert.equal(late.behind, Number(BigInt(`0x${late.head}`) - BigInt(`0x${late.position}`)));
    assert.ok(late.behind > 0);
    assert.equal(late.unit, 'bytes');
  });
}

test('a rebuild ends while other clients append: its threshold counts events, not bytes', async ({
  signal,
}) => {
  const server = await serve('23.10');
  await using db = await openKurrent(server.url);
  const { store } = db;
  const roles = rolesOf(store);
  const stream = newStream();
  await store.append(stream, newEvents(40));
  let appended = 40;
  let heads = 0;
  const busy: EventStore = {
    ...store,
    // 10 events come before each head: always more than 5,000 bytes with their links.
    async head() {
      heads += 1;
      assert.ok(heads < 10, 'the rebuild does not end');
      await store.append(stream, newEvents(10));
      appended += 10;
      return store.head();
    },
  };
  const result = await rebuildProjection({ ...roles, store: busy }, counts, {
    pageSize: 20,
    signal,
  });
  assert.equal(result.events, appended);
  assert.equal(await countOf(roles, stream), appended);
});

/** A client whose connection moves: the head comes from the leader, and all other reads from a node that lags. */
async function movingClient(): Promise<{
  readonly leader: EventStore;
  readonly store: EventStore;
  readonly hold: () => () => void;
}> {
  const server = await serve('cluster');
  const [first, behind] = [server.nodes[0], server.nodes.at(-1)];
  assert.ok(first !== undefined && behind !== undefined);
  const { store: leader } = opened.use(await openKurrent(first.url));
  const url = `${behind.url}&nodePreference=follower`;
  const { store } = opened.use(await openKurrent(url, { pollIntervalMs: 100 }));
  return {
    leader,
    store: { ...store, head: () => leader.head() },
    hold: () => behind.holdReplication(),
  };
}

test('a rebuild through a node that lags keeps the position that it has read', async ({
  signal,
}) => {
  const { leader, store, hold } = await movingClient();
  const roles = rolesOf(store);
  const stream = newStream();
  const { position: replicated } = await leader.append(stream, newEvents(25));
  const release = hold();
  const { position: last } = await leader.append(stream, newEvents(15));
  const result = await rebuildProjection(roles, counts, { signal });
  assert.deepEqual([result.events, result.position], [25, replicated]);
  release();
  await using runner = await startProjection(roles, counts);
  await runner.waitFor(last, { signal });
  assert.equal(await countOf(roles, stream), 40);
});

test('an export through a node that lags ends at the position that it has read', async () => {
  const { leader, store, hold } = await movingClient();
  const [stream, events] = [newStream(), newEvents(40)];
  await leader.append(stream, events.slice(0, 25));
  const release = hold();
  await leader.append(stream, events.slice(25));
  const first = await exported(store, undefined);
  release();
  const second = await exported(store, first.checkpoint);
  assert.deepEqual(idsIn(first), idsOf(events.slice(0, 25)));
  assert.deepEqual(idsIn(second), idsOf(events.slice(25)));
});

test('an export of a category repeats nothing when it continues, without any metadata event', async () => {
  const server = await serve('24.10');
  await using db = await openKurrent(server.url);
  const { store } = db;
  const category = unique('exported');
  const events = newEvents(12, { type: 'account.opened.v1' });
  for (const event of events) {
    await store.append(newStream(category), [event]);
    await store.append(newStream(), newEvents(3));
  }
  const filter = { category };
  const first = await exported(store, undefined, filter);
  assert.deepEqual(idsIn(first), idsOf(events));
  const second = await exported(store, first.checkpoint, filter);
  assert.deepEqual(idsIn(second), []);
  const [later, stream] = [newEvents(2), newStream(category)];
  await store.append(stream, later);
  await store.setStreamMetadata(stream, { maxCount: 5 });
  const third = await exported(store, second.checkpoint, filter);
  assert.deepEqual(
    third.lines.slice(0, -1).map((line) => line.stream),
    [stream, stream, `$$${stream}`],
  );
});

interface Exported {
  readonly lines: readonly { readonly stream?: string; readonly eventId?: string }[];
  readonly checkpoint: Position;
}

/** The ids of the events of clients. */
function idsIn({ lines }: Exported): readonly string[] {
  const isOfClient = ({ stream = '$' }: Exported['lines'][number]): boolean => stream[0] !== '$';
  return lines.filter(isOfClient).map(({ eventId = '' }) => eventId);
}

async function exported(
  store: EventStore,
  from: Position | undefined,
  filter?: EventFilter,
): Promise<Exported> {
  let text = '';
  for await (const piece of exportEvents(store, { after: from, filter })) text += piece;
  const lines = text
    .trim()
    .split('\n')
    .map(
      (line) => JSON.parse(line) as Exported['lines'][number] & { readonly checkpoint?: string },
    );
  return { lines, checkpoint: parsePosition(lines.at(-1)?.checkpoint ?? '') };
}
