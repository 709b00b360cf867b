// Random work on a store and on a simple model: both must agree after every step.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { seededRandom, type SeededRandom } from '../../seeded-random.ts';
import type { EventStore } from '../../../store/event-store.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import {
  assertAscending,
  idsOf,
  newEvent,
  newStream,
  storedIds,
  unique,
  type CaseContext,
  type StoreCases,
} from './fixture.ts';

export const storeModelCases: StoreCases = Object.fromEntries(
  [1, 2].map((seed) => [
    `random operations on streams have the results of the model (seed ${seed})`,
    (context: CaseContext) => compareWithModel(context.store, seed),
  ]),
);

/** The expected state of one stream, by EventStoreDB's rules. */
export interface ModelStream {
  /** The event ids by revision. */
  readonly ids: readonly string[];
  /** Whether anything was written, even if only metadata. */
  readonly known: boolean;
  readonly hiddenBelow: number;
  readonly deleted: 'no' | 'soft' | 'tombstone';
}

export const emptyModelStream: ModelStream = {
  ids: [],
  known: false,
  hiddenBelow: 0,
  deleted: 'no',
};

export type ModelOutcome =
  | { readonly kind: 'appended' | 'duplicate' | 'conflict'; readonly revision: number }
  | { readonly kind: 'deleted' };

/** The append rules of EventStoreDB's documentation, in their order. */
export function modelAppend(
  stream: ModelStream,
  expected: ExpectedRevision,
  ids: readonly string[],
): ModelOutcome {
  const current = stream.ids.length - 1;
  const appended: ModelOutcome = { kind: 'appended', revision: current + ids.length };
  const conflict: ModelOutcome = { kind: 'conflict', revision: current };
  if (stream.deleted === 'tombstone') return { kind: 'deleted' };
  if (expected === 'exists' && stream.deleted === 'soft') return { kind: 'deleted' };
  if (expected === 'exists' && !stream.known) return conflict;
  if (expected === 'any' || expected === 'exists') {
    const revisions = ids.map((id) => stream.ids.lastIndexOf(id));
    if (revisions[0] === -1) return appended;
    return revisions.includes(-1)
      ? conflict
      : { kind: 'duplicate', revision: Math.max(...revisions) };
  }
  const at = expected === 'none' ? -1 : expected;
  if (at === current) return appended;
  const slots = stream.ids.slice(at + 1, at + 1 + ids.length);
  if (at < current && idsEqual(slots, ids)) return { kind: 'duplicate', revision: at + ids.length };
  const begins = expected === 'none' && stream.deleted === 'soft' && slots[0] !== ids[0];
  return begins ? appended : conflict;
}

async function compareWithModel(store: EventStore, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const category = unique('c');
  const models = new Map<string, ModelStream>();
  for (let index = 0; index < 3; index += 1) models.set(newStream(category), emptyModelStream);
  const order: string[] = [];
  for (let step = 0; step < 120; step += 1) {
    const stream = random.pick([...models.keys()]);
    const model = models.get(stream) ?? emptyModelStream;
    const kind = random.below(100);
    const next =
      kind < 84
        ? await appendBoth(store, stream, { model, random, order })
        : kind < 92
          ? await truncateBoth(store, stream, { model, random })
          : kind < 99
            ? await deleteBoth(store, stream, model)
            : await tombstoneBoth(store, stream, model);
    models.set(stream, next);
    await assertSame(store, stream, next);
  }
  const all = await store.readAll({ filter: { category } }).toArray();
  assert.deepEqual(idsOf(all), order);
  assertAscending(all.map(({ position }) => position));
}

async function appendBoth(
  store: EventStore,
  stream: string,
  {
    model,
    random,
    order,
  }: { readonly model: ModelStream; readonly random: SeededRandom; readonly order: string[] },
): Promise<ModelStream> {
  const expected = randomExpected(model, random);
  const ids = randomIds(model, random);
  const outcome = modelAppend(model, expected, ids);
  const events = ids.map((eventId) => newEvent({ eventId }));
  const append = () => store.append(stream, events, { expected });
  const what = JSON.stringify({ expected, ids, model });
  if (outcome.kind === 'deleted') {
    await rejectsWith(append, 'STREAM_DELETED');
    return model;
  }
  if (outcome.kind === 'conflict') {
    const error = await rejectsWith(append, 'VERSION_CONFLICT');
    assert.deepEqual(error.details, { stream, expected, actual: outcome.revision }, what);
    return model;
  }
  const { revision, isDuplicate } = await append();
  assert.deepEqual(
    { revision, isDuplicate },
    { revision: outcome.revision, isDuplicate: outcome.kind === 'duplicate' },
    what,
  );
  if (outcome.kind === 'duplicate') return model;
  order.push(...ids);
  const hiddenBelow = model.deleted === 'soft' ? model.ids.length : model.hiddenBelow;
  return { ids: [...model.ids, ...ids], known: true, deleted: 'no', hiddenBelow };
}

async function truncateBoth(
  store: EventStore,
  stream: string,
  { model, random }: { readonly model: ModelStream; readonly random: SeededRandom },
): Promise<ModelStream> {
  const truncateBefore = random.below(model.ids.length + 2);
  const set = () => store.setStreamMetadata(stream, { truncateBefore });
  if (model.deleted === 'tombstone') {
    await rejectsWith(set, 'STREAM_DELETED');
    return model;
  }
  await set();
  const hiddenBelow = model.deleted === 'soft' ? model.ids.length : truncateBefore;
  return { ...model, known: true, deleted: 'no', hiddenBelow };
}

async function deleteBoth(
  store: EventStore,
  stream: string,
  model: ModelStream,
): Promise<ModelStream> {
  if (model.deleted === 'tombstone') {
    await rejectsWith(() => store.deleteStream(stream), 'STREAM_DELETED');
    return model;
  }
  await store.deleteStream(stream);
  return { ...model, known: true, deleted: 'soft' };
}

async function tombstoneBoth(
  store: EventStore,
  stream: string,
  model: ModelStream,
): Promise<ModelStream> {
  if (model.deleted !== 'tombstone') await store.tombstoneStream(stream);
  return { ...model, known: true, deleted: 'tombstone' };
}

async function assertSame(store: EventStore, stream: string, model: ModelStream): Promise<void> {
  const info = await store.streamInfo(stream);
  assert.equal(info !== undefined, model.known);
  assert.equal(info?.deleted ?? 'no', model.deleted);
  try {
    const visible = model.deleted === 'soft' ? [] : model.ids.slice(model.hiddenBelow);
    assert.deepEqual(await storedIds(store, stream), visible);
    assert.equal(info?.revision ?? -1, model.ids.length - 1);
  } catch (error) {
    if (model.deleted !== 'tombstone' || !hasCode(error, 'STREAM_DELETED')) throw error;
  }
}

function randomExpected(model: ModelStream, random: SeededRandom): ExpectedRevision {
  const around = model.ids.length - 1 + random.pick([0, 0, 0, 0, -1, 1, -2]);
  return random.pick<ExpectedRevision>([
    'any',
    'any',
    'none',
    'exists',
    Math.max(0, around),
    Math.max(0, around),
    random.below(model.ids.length + 1),
  ]);
}

/** New ids, or existing ids of the stream: all, some, or with new ones before or after them. */
function randomIds(model: ModelStream, random: SeededRandom): string[] {
  const fresh = Array.from({ length: 1 + random.below(3) }, () => unique('e'));
  const from = random.below(model.ids.length + 1);
  const known = model.ids.slice(from, from + 1 + random.below(3));
  // An id that occurs twice in the stream has no unique revision for a duplicate.
  const once = known.filter((id) => model.ids.indexOf(id) === model.ids.lastIndexOf(id));
  const ids = random.pick([fresh, fresh, fresh, once, once, [...once, ...fresh.slice(1)]]);
  return ids.length === 0 ? fresh : ids;
}

function idsEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index]);
}
