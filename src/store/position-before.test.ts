import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRig, streamOf } from '../testing/support/subscriptions/rig.ts';
import { startPosition } from './position.ts';

test('the position of a time is that of the last event recorded before it', async () => {
  const { clock, db, append } = createRig();
  assert.equal(await db.store.positionBefore(clock.now()), startPosition);
  for (let number = 0; number < 23; number += 1) {
    await append(`s${number % 3}`, number);
    if (number % 4 === 0) await clock.advance(1_000);
  }
  // The positions of deleted events.
  await db.store.setStreamMetadata(streamOf('s1'), { truncateBefore: 4 });
  await db.store.scavenge();
  const events = await db.store.readAll().toArray();
  const times = new Set(events.map(({ recordedAt }) => Date.parse(recordedAt)));
  for (const time of [0, ...times, ...[...times].map((each) => each + 1), Number.MAX_VALUE]) {
    const position = await db.store.positionBefore(time);
    const before = events.filter(({ recordedAt }) => Date.parse(recordedAt) < time);
    const behind = events.filter((event) => event.position > position);
    assert.equal(before.length + behind.length, events.length, `at ${time}`);
  }
});
