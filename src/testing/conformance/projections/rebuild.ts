// Rebuilds: a new version is built, queries switch to it, and the old one is removed, without downtime.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { startPosition } from '../../../store/position.ts';
import { activeDocuments } from '../../../projections/active-documents.ts';
import { newCounters, type Counters, type HostStore } from './projection-fixture.ts';
import type { ProjectionCases } from './projections.ts';
import type { RebuildProgress } from '../../../projections/rules/rebuild-progress.ts';
import { rebuildProjection } from '../../../projections/rebuild-projection.ts';
import { startProjection } from '../../../projections/start-projection.ts';
import {
  projectionStatus,
  retireProjection,
  switchProjection,
} from '../../../projections/switch-projection.ts';

const ids = Array.from({ length: 10 }, (_, index) => `s${index}`);

/** Appends ten events to each of ten streams, in turn. */
async function fill(store: HostStore, counters: Counters): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(ids.map((id) => store.append(counters.stream(id), counters.add(1))));
  }
}

/** Starts the first version and waits until it has caught up. */
async function firstVersion(store: HostStore, counters: Counters): Promise<void> {
  await using runner = await startProjection(store, counters.projection());
  await runner.whenCaughtUp();
}

async function assertAll(
  store: HostStore,
  counters: Counters,
  { version, events }: { readonly version: number; readonly events: number },
): Promise<void> {
  for (const id of ids) {
    const found = await counters.documents(store, version).get('core', id);
    assert.equal(found?.document.events, events, id);
    assert.equal(found.document.total, events * version, id);
  }
}

export const rebuildCases: ProjectionCases = {
  'builds a new version while queries use the active one': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const result = await rebuildProjection(store, counters.projection({ version: 2 }));
    assert.equal(result.events, 100);
    assert.equal(result.deadLetters, 0);
    await assertAll(store, counters, { version: 1, events: 10 });
    await assertAll(store, counters, { version: 2, events: 10 });
  },

  'queries use the first version until the switch, then the second': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    const queries = activeDocuments(store, [one.readModel, two.readModel]);
    await rebuildProjection(store, two);
    assert.equal((await queries.get('core', 's1'))?.document.total, 10);
    await switchProjection(store, two);
    assert.equal((await queries.get('core', 's1'))?.document.total, 20);
    assert.equal((await queries.byIndex('core', 'name', 'n-core-s2'))?.document.total, 20);
    assert.equal((await queries.bySet('core', 'positive')).items[0]?.document.total, 20);
    assert.equal((await queries.byRange('core', 'total')).items[0]?.document.total, 20);
    await switchProjection(store, one);
    assert.equal((await queries.get('core', 's1'))?.document.total, 10);
  },

  'paging that started on one version stays on that version': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    const queries = activeDocuments(store, [one.readModel, two.readModel]);
    await rebuildProjection(store, two);
    const first = await queries.byRange('core', 'total', { limit: 4 });
    await switchProjection(store, two);
    const rest = await queries.byRange('core', 'total', { cursor: first.cursor });
    const walked = [...first.items, ...rest.items];
    assert.deepEqual(walked.map(({ id }) => id).toSorted(), ids.toSorted());
    assert.ok(walked.every(({ document }) => document.total === 10));
    await retireProjection(store, one);
    await assert.rejects(queries.byRange('core', 'total', { cursor: first.cursor }), (error) =>
      hasCode(error, 'CURSOR_INVALID'),
    );
  },

  'events appended during the rebuild are in the new version, or follow when it runs': async ({
    store,
  }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const two = counters.projection({ version: 2 });
    let isFirst = true;
    const appended: Promise<unknown>[] = [];
    await rebuildProjection(store, two, {
      pageSize: 10,
      onProgress() {
        if (!isFirst) return;
        isFirst = false;
        appended.push(...ids.map((id) => store.append(counters.stream(id), counters.add(1))));
      },
    });
    await Promise.all(appended);
    await using runner = await startProjection(store, two);
    await runner.whenCaughtUp();
    await assertAll(store, counters, { version: 2, events: 11 });
  },

  'a cancelled rebuild resumes where it stopped': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const two = counters.projection({ version: 2 });
    const stopping = new AbortController();
    const options = {
      pageSize: 10,
      signal: stopping.signal,
      onProgress: ({ events }: RebuildProgress) => void (events >= 30 && stopping.abort()),
    };
    await assert.rejects(rebuildProjection(store, two, options), (error) =>
      hasCode(error, 'ABORTED'),
    );
    const all = await projectionStatus(store);
    const before = all.find(({ projection }) => projection === two.name);
    assert.equal(before?.status, 'building');
    const { events } = await rebuildProjection(store, two, { pageSize: 10 });
    assert.ok(events >= 10 && events <= 70, `${events} events`);
    await assertAll(store, counters, { version: 2, events: 10 });
  },

  'a rebuild without its checkpoint starts over and is correct': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    const two = counters.projection({ version: 2 });
    await firstVersion(store, counters);
    await rebuildProjection(store, two, { pageSize: 7 });
    const reason = { by: 'test', atMs: 0 };
    await store.subscriptions.checkpoints.reset(two.name, startPosition, reason);
    await rebuildProjection(store, two, { pageSize: 7 });
    await assertAll(store, counters, { version: 2, events: 10 });
  },

  'the progress never decreases and reaches the head': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const reported: RebuildProgress[] = [];
    await rebuildProjection(store, counters.projection({ version: 2 }), {
      pageSize: 10,
      onProgress: (progress) => void reported.push(progress),
    });
    assert.ok(reported.length > 5);
    for (const [index, each] of reported.entries()) {
      assert.ok(each.done >= (reported[index - 1]?.done ?? 0) && each.done <= 1);
      assert.ok(each.events >= (reported[index - 1]?.events ?? 0));
    }
    assert.equal(reported.at(-1)?.done, 1);
    assert.equal(reported.at(-1)?.events, 100);
    assert.equal(reported.at(-1)?.secondsLeft, 0);
  },

  'dead-letters an event that cannot be handled and builds the rest': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const two = counters.projection({
      version: 2,
      onAdded({ stream, revision }) {
        if (stream === counters.stream('s3') && revision === 4) throw new Error('not this one');
      },
    });
    const { deadLetters } = await rebuildProjection(store, two, { pageSize: 10 });
    assert.equal(deadLetters, 1);
    const documents = counters.documents(store, 2);
    assert.equal((await documents.get('core', 's3'))?.document.events, 4);
    for (const id of ids.filter((each) => each !== 's3')) {
      assert.equal((await documents.get('core', id))?.document.events, 10);
    }
    await switchProjection(store, two);
  },

  'switches only to a version that has caught up': async ({ store }) => {
    const counters = newCounters();
    await firstVersion(store, counters);
    const two = counters.projection({ version: 2 });
    await rejectsWith(() => switchProjection(store, two), 'PROJECTION_UNKNOWN');
    const family = `counting.${counters.aggregate}`;
    const declared = { family, version: 2, projection: two.name, target: undefined };
    await store.readModelVersions.declare(declared, 0);
    await rejectsWith(() => switchProjection(store, two), 'PROJECTION_INVALID');
    const active = (await store.readModelVersions.list(family)).filter((each) => each.active);
    assert.deepEqual(
      active.map(({ version }) => version),
      [1],
    );
  },

  'rejects rebuilding or retiring the active version': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    const one = counters.projection();
    await rebuildProjection(store, one);
    await rejectsWith(() => rebuildProjection(store, one), 'PROJECTION_INVALID');
    await rejectsWith(() => retireProjection(store, one), 'PROJECTION_INVALID');
    await assertAll(store, counters, { version: 1, events: 10 });
  },

  'a retired version loses all documents and cannot be started': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    await firstVersion(store, counters);
    await rebuildProjection(store, two);
    await switchProjection(store, two);
    const steps: number[] = [];
    const onProgress = (removed: number) => void steps.push(removed);
    assert.equal(await retireProjection(store, one, { onProgress }), 10);
    assert.equal(steps.at(-1), 10);
    assert.equal(await retireProjection(store, one), 0);
    assert.equal(await counters.documents(store, 1).get('core', 's1'), undefined);
    await assertAll(store, counters, { version: 2, events: 10 });
    await rejectsWith(() => startProjection(store, one), 'PROJECTION_INVALID');
    await rejectsWith(() => switchProjection(store, one), 'PROJECTION_INVALID');
    const all = await projectionStatus(store);
    const mine = all.filter(({ family }) => family === `counting.${counters.aggregate}`);
    assert.deepEqual(
      mine.map(({ version, status, active, paused }) => ({ version, status, active, paused })),
      [
        { version: 1, status: 'retired', active: false, paused: true },
        { version: 2, status: 'ready', active: true, paused: false },
      ],
    );
  },

  'stops a running version before removing it': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    await using runner = await startProjection(store, one, { leaseMs: 150 });
    await runner.whenCaughtUp();
    await rebuildProjection(store, two);
    await switchProjection(store, two);
    await retireProjection(store, one);
    await store.append(counters.stream('s1'), counters.add(1));
    assert.deepEqual(runner.status.shards, []);
    assert.equal(await counters.documents(store, 1).get('core', 's1'), undefined);
  },

  'two processes do not rebuild one version concurrently': async ({ store }) => {
    const counters = newCounters();
    await fill(store, counters);
    await firstVersion(store, counters);
    const two = counters.projection({ version: 2 });
    await store.subscriptions.checkpoints.open(two.name, 1);
    const shard = { subscription: two.name, shard: 0 };
    const lease = await store.subscriptions.leases.acquire(shard, 'other', 600_000);
    assert.equal(lease.kind, 'acquired');
    await assert.rejects(rebuildProjection(store, two, { leaseMs: 30 }), (error) =>
      hasCode(error, 'PROJECTION_BUSY'),
    );
  },
};
