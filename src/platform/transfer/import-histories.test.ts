// Exports and imports random histories: readers of the target see the same events as readers of the source.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openMemory } from '../../engines/memory/index.ts';
import { hasCode } from '../../foundation/error.ts';
import type { EventStore } from '../../store/event-store.ts';
import { propertyRuns } from '../../testing/property-runs.ts';
import {
  exported,
  idsInOrder,
  imported,
  openTarget,
  renamed,
  streams,
  visible,
} from '../../testing/support/platform/test-currencies.ts';

type StreamStep =
  | {
      readonly kind: 'metadata';
      readonly stream: string;
      readonly maxCount?: number | undefined;
      /** The part of the stream before the cut, from 0 to 1. */
      readonly truncate?: number | undefined;
    }
  | { readonly kind: 'delete'; readonly stream: string }
  | { readonly kind: 'tombstone'; readonly stream: string };

type Step =
  | {
      readonly kind: 'append';
      readonly stream: string;
      readonly count: number;
      readonly subject?: string | undefined;
    }
  | StreamStep
  | { readonly kind: 'forget'; readonly subject: string }
  | { readonly kind: 'scavenge' };

const stream = fc.constantFrom(...streams);
const subject = fc.constantFrom('ann', 'bob');
const appendStep = fc.record({
  kind: fc.constant('append' as const),
  stream,
  count: fc.integer({ min: 1, max: 4 }),
  subject: fc.option(subject, { nil: undefined, freq: 2 }),
});
const otherSteps = [
  fc.record({
    kind: fc.constant('metadata' as const),
    stream,
    maxCount: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
    truncate: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
  }),
  fc.record({ kind: fc.constant('delete' as const), stream }),
  fc.record({ kind: fc.constant('forget' as const), subject }),
];
const tombstoneStep = fc.record({ kind: fc.constant('tombstone' as const), stream });
const scavengeStep = fc.constant({ kind: 'scavenge' as const });
const history = (...more: readonly fc.Arbitrary<Step>[]): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.oneof(
      { arbitrary: appendStep, weight: 12 },
      ...otherSteps.map((arbitrary) => ({ arbitrary, weight: 2 })),
      ...more.map((arbitrary) => ({ arbitrary, weight: 1 })),
    ),
    { maxLength: 30 },
  );

async function play(store: EventStore, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    try {
      await playOne(store, step);
    } catch (error) {
      if (!hasCode(error, 'STREAM_DELETED') && !hasCode(error, 'SUBJECT_FORGOTTEN')) throw error;
    }
  }
}

async function playOne(store: EventStore, step: Step): Promise<void> {
  if (step.kind === 'scavenge') await store.scavenge();
  else if (step.kind === 'forget') await store.forget(step.subject);
  else if (step.kind === 'append') {
    const headers = step.subject === undefined ? {} : { headers: { dataSubject: step.subject } };
    const events = Array.from({ length: step.count }, (_, index) => renamed(`n${index}`, headers));
    await store.append(step.stream, events);
  } else await changeStream(store, step);
}

async function changeStream(store: EventStore, step: StreamStep): Promise<void> {
  const info = await store.streamInfo(step.stream);
  // An import omits a truncation before the first event of a stream.
  if (info === undefined || info.revision < 0 || info.deleted !== 'no') return;
  if (step.kind === 'delete') await store.deleteStream(step.stream);
  else if (step.kind === 'tombstone') await store.tombstoneStream(step.stream);
  else if (step.kind === 'metadata') {
    const { maxCount, truncate } = step;
    await store.setStreamMetadata(step.stream, {
      custom: { owner: 'tests' },
      ...(maxCount === undefined ? {} : { maxCount }),
      ...(truncate === undefined
        ? {}
        : { truncateBefore: Math.floor(truncate * (info.revision + 2)) }),
    });
  }
}

test('is equal to its source after any history, imported once, in two parts or repeatedly', async () => {
  await fc.assert(
    fc.asyncProperty(history(tombstoneStep), fc.nat(), async (steps, cut) => {
      await using source = openMemory().store;
      await play(source, steps);
      const text = await exported(source);
      const lines = text.split('\n');
      await using target = openTarget();
      // An interrupted import: only the beginning of the file was written.
      await imported(target, lines.slice(0, cut % lines.length).join('\n'));
      await imported(target, text);
      assert.deepEqual(await visible(target), await visible(source));
      assert.deepEqual(await idsInOrder(target), await idsInOrder(source));
      const { appended } = await imported(target, text);
      assert.equal(appended, 0);
      assert.deepEqual(await visible(target), await visible(source));
    }),
    { numRuns: propertyRuns(150) },
  );
});

test('has the same events after scavenges, with revisions without gaps', async () => {
  await fc.assert(
    fc.asyncProperty(history(scavengeStep), fc.nat(), async (steps, cut) => {
      await using source = openMemory().store;
      await play(source, steps);
      const text = await exported(source);
      const lines = text.split('\n');
      await using target = openTarget();
      await imported(target, lines.slice(0, cut % lines.length).join('\n'));
      await imported(target, text);
      assert.deepEqual(
        await visible(target, { revisions: false }),
        await visible(source, { revisions: false }),
      );
      assert.equal((await imported(target, text)).appended, 0);
    }),
    { numRuns: propertyRuns(150) },
  );
});
