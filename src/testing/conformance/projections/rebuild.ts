// Rebuilds: a new version is built, queries switch to it, and the old one is removed, without downtime.

import assert from 'node:assert/strict';
import { eventually, rejectsWith } from '../../assertions.ts';
import { hasCode } from '../../../foundation/error.ts';
import { startPosition } from '../../../store/position.ts';
import { activeDocuments } from '../../../projections/active-documents.ts';
import { newCounters, type Counters, type ProjectionHandle } from './projection-fixture.ts';
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
async function fill(db: ProjectionHandle, counters: Counters): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(ids.map((id) => db.store.append(counters.stream(id), counters.add(1))));
  }
}

/** Starts the first version and waits until it has caught up. */
async function firstVersion(db: ProjectionHandle, counters: Counters): Promise<void> {
  await using runner = await startProjection(db, counters.projection());
  await runner.whenCaughtUp();
}

async function assertAll(
  db: ProjectionHandle,
  counters: Counters,
  { version, events }: { readonly version: number; readonly events: number },
): Promise<void> {
  for (const id of ids) {
    const found = await counters.documents(db, version).get('core', id);
    assert.equal(found?.document.events, events, id);
    assert.equal(found.document.total, events * version, id);
  }
}

export const rebuildCases: ProjectionCases = {
  'builds a new version while queries use the active one': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const result = await rebuildProjection(db, counters.projection({ version: 2 }));
    assert.equal(result.events, 100);
    assert.equal(result.deadLetters, 0);
    await assertAll(db, counters, { version: 1, events: 10 });
    await assertAll(db, counters, { version: 2, events: 10 });
  },

  'queries use the first version until the switch, then the second': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    const queries = activeDocuments(db, [one.readModel, two.readModel]);
    await rebuildProjection(db, two);
    assert.equal((await queries.get('core', 's1'))?.document.total, 10);
    await switchProjection(db, two);
    assert.equal((await queries.get('core', 's1'))?.document.total, 20);
    assert.equal((await queries.byIndex('core', 'name', 'n-core-s2'))?.document.total, 20);
    assert.equal((await queries.bySet('core', 'positive')).items[0]?.document.total, 20);
    assert.equal((await queries.byRange('core', 'total')).items[0]?.document.total, 20);
    await switchProjection(db, one);
    assert.equal((await queries.get('core', 's1'))?.document.total, 10);
  },

  'paging that started on one version stays on that version': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    const queries = activeDocuments(db, [one.readModel, two.readModel]);
    await rebuildProjection(db, two);
    const first = await queries.byRange('core', 'total', { limit: 4 });
    await switchProjection(db, two);
    const rest = await queries.byRange('core', 'total', { cursor: first.cursor });
    const walked = [...first.items, ...rest.items];
    assert.deepEqual(walked.map(({ id }) => id).toSorted(), ids.toSorted());
    assert.ok(walked.every(({ document }) => document.total === 10));
    await retireProjection(db, one);
    await assert.rejects(queries.byRange('core', 'total', { cursor: first.cursor }), (error) =>
      hasCode(error, 'CURSOR_INVALID'),
    );
  },

  'events appended during the rebuild are in the new version, or follow when it runs': async ({
    db,
  }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const two = counters.projection({ version: 2 });
    let isFirst = true;
    const appended: Promise<unknown>[] = [];
    await rebuildProjection(db, two, {
      pageSize: 10,
      onProgress() {
        if (!isFirst) return;
        isFirst = false;
        appended.push(...ids.map((id) => db.store.append(counters.stream(id), counters.add(1))));
      },
    });
    await Promise.all(appended);
    await using runner = await startProjection(db, two);
    await runner.whenCaughtUp();
    await assertAll(db, counters, { version: 2, events: 11 });
  },

  'a cancelled rebuild resumes where it stopped': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const two = counters.projection({ version: 2 });
    const stopping = new AbortController();
    const options = {
      pageSize: 10,
      signal: stopping.signal,
      onProgress: ({ events }: RebuildProgress) => void (events >= 30 && stopping.abort()),
    };
    await assert.rejects(rebuildProjection(db, two, options), (error) => hasCode(error, 'ABORTED'));
    const all = await projectionStatus(db);
    const before = all.find(({ projection }) => projection === two.name);
    assert.equal(before?.status, 'building');
    const { events } = await rebuildProjection(db, two, { pageSize: 10 });
    assert.ok(events >= 10 && events <= 70, `${events} events`);
    await assertAll(db, counters, { version: 2, events: 10 });
  },

  'a rebuild without its checkpoint starts over and is correct': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    const two = counters.projection({ version: 2 });
    await firstVersion(db, counters);
    await rebuildProjection(db, two, { pageSize: 7 });
    const reason = { by: 'test', atMs: 0 };
    await db.subscriptions.checkpoints.reset(two.name, startPosition, reason);
    await rebuildProjection(db, two, { pageSize: 7 });
    await assertAll(db, counters, { version: 2, events: 10 });
  },

  'the progress never decreases and reaches the head': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const reported: RebuildProgress[] = [];
    await rebuildProjection(db, counters.projection({ version: 2 }), {
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

  'dead-letters an event that cannot be handled and builds the rest': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const two = counters.projection({
      version: 2,
      onAdded({ stream, revision }) {
        if (stream === counters.stream('s3') && revision === 4) throw new Error('not this one');
      },
    });
    const { deadLetters } = await rebuildProjection(db, two, { pageSize: 10 });
    assert.equal(deadLetters, 1);
    const documents = counters.documents(db, 2);
    assert.equal((await documents.get('core', 's3'))?.document.events, 4);
    for (const id of ids.filter((each) => each !== 's3')) {
      assert.equal((await documents.get('core', id))?.document.events, 10);
    }
    await switchProjection(db, two);
  },

  'switches only to a version that has caught up': async ({ db }) => {
    const counters = newCounters();
    await firstVersion(db, counters);
    const two = counters.projection({ version: 2 });
    await rejectsWith(() => switchProjection(db, two), 'PROJECTION_UNKNOWN');
    const family = `counting.${counters.aggregate}`;
    const declared = { family, version: 2, projection: two.name, target: undefined };
    await db.readModelVersions.declare(declared, 0);
    await rejectsWith(() => switchProjection(db, two), 'PROJECTION_INVALID');
    const active = (await db.readModelVersions.list(family)).filter((each) => each.active);
    assert.deepEqual(
      active.map(({ version }) => version),
      [1],
    );
  },

  'rejects rebuilding or retiring the active version': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    const one = counters.projection();
    await rebuildProjection(db, one);
    await rejectsWith(() => rebuildProjection(db, one), 'PROJECTION_INVALID');
    await rejectsWith(() => retireProjection(db, one), 'PROJECTION_INVALID');
    await assertAll(db, counters, { version: 1, events: 10 });
  },

  'a retired version loses all documents and cannot be started': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    await firstVersion(db, counters);
    await rebuildProjection(db, two);
    await switchProjection(db, two);
    const steps: number[] = [];
    const onProgress = (removed: number) => void steps.push(removed);
    assert.equal(await retireProjection(db, one, { onProgress }), 10);
    assert.equal(steps.at(-1), 10);
    assert.equal(await retireProjection(db, one), 0);
    assert.equal(await counters.documents(db, 1).get('core', 's1'), undefined);
    await assertAll(db, counters, { version: 2, events: 10 });
    await rejectsWith(() => startProjection(db, one), 'PROJECTION_INVALID');
    await rejectsWith(() => switchProjection(db, one), 'PROJECTION_INVALID');
    const all = await projectionStatus(db);
    const mine = all.filter(({ family }) => family === `counting.${counters.aggregate}`);
    assert.deepEqual(
      mine.map(({ version, status, active, paused }) => ({ version, status, active, paused })),
      [
        { version: 1, status: 'retired', active: false, paused: true },
        { version: 2, status: 'ready', active: true, paused: false },
      ],
    );
  },

  'stops a running version before removing it': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    const [one, two] = [counters.projection(), counters.projection({ version: 2 })];
    await using runner = await startProjection(db, one, { leaseMs: 150 });
    await runner.whenCaughtUp();
    await rebuildProjection(db, two);
    await switchProjection(db, two);
    await retireProjection(db, one);
    await db.store.append(counters.stream('s1'), counters.add(1));
    // A lease that ran out under load is taken before the runner has noticed.
    await eventually('the runner has stopped', () => runner.status.shards.length === 0);
    assert.equal(await counters.documents(db, 1).get('core', 's1'), undefined);
  },

  'two processes do not rebuild one version concurrently': async ({ db }) => {
    const counters = newCounters();
    await fill(db, counters);
    await firstVersion(db, counters);
    const two = counters.projection({ version: 2 });
    await db.subscriptions.checkpoints.open(two.name, 1);
    const shard = { subscription: two.name, shard: 0 };
    const lease = await db.subscriptions.leases.acquire(shard, 'other', 600_000);
    assert.equal(lease.kind, 'acquired');
    await assert.rejects(rebuildProjection(db, two, { leaseMs: 30 }), (error) =>
      hasCode(error, 'PROJECTION_BUSY'),
    );
  },
};
