import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toPosition, type Position } from '../../store/position.ts';
import { createCheckpointTracker } from './checkpoint-tracker.ts';

test('the checkpoint is the highest position up to which all events are processed', () => {
  const tracker = createCheckpointTracker();
  const tickets = [1, 2, 3].map((at) => tracker.add(toPosition(at)));
  tracker.done(tickets[1] ?? -1);
  assert.equal(tracker.position, undefined);
  tracker.done(tickets[0] ?? -1);
  assert.equal(tracker.position, toPosition(2));
  assert.equal(tracker.oldest?.position, toPosition(3));
  tracker.done(tickets[2] ?? -1);
  assert.equal(tracker.position, toPosition(3));
  assert.ok(tracker.isIdle);
});

test('a range without matches moves the checkpoint, but not past an unprocessed event', () => {
  const tracker = createCheckpointTracker(toPosition(5));
  tracker.pass(toPosition(100));
  assert.equal(tracker.position, toPosition(100));
  const ticket = tracker.add(toPosition(101));
  tracker.pass(toPosition(200));
  assert.equal(tracker.position, toPosition(100));
  tracker.done(ticket);
  assert.equal(tracker.position, toPosition(200));
});

test('positionWith returns the position after the given tickets', () => {
  const tracker = createCheckpointTracker(toPosition(0));
  const [first = -1, second = -1, third = -1] = [1, 2, 3].map((at) => tracker.add(toPosition(at)));
  tracker.pass(toPosition(9));
  tracker.done(second);
  assert.equal(tracker.positionWith([]), toPosition(0));
  assert.equal(tracker.positionWith([third]), toPosition(0));
  assert.equal(tracker.positionWith([first]), toPosition(2));
  assert.equal(tracker.positionWith([third, first]), toPosition(9));
  assert.equal(tracker.position, toPosition(0));
});

test('for any order of completion the tracker agrees with the definition', () => {
  const order = fc
    .integer({ min: 1, max: 200 })
    .chain((count) =>
      fc.shuffledSubarray([...Array(count).keys()], { minLength: count, maxLength: count }),
    );
  fc.assert(
    fc.property(order, fc.nat({ max: 300 }), (done, ahead) => {
      const tracker = createCheckpointTracker(toPosition(0));
      const tickets: number[] = [];
      const finished = new Set<number>();
      const add = (): void => void tickets.push(tracker.add(toPosition(tickets.length + 1)));
      while (tickets.length < Math.min(ahead, done.length)) add();
      for (const each of done) {
        while (tickets.length <= each) add();
        tracker.done(tickets[each] ?? -1);
        finished.add(each);
        let expected = 0;
        while (finished.has(expected)) expected += 1;
        assert.equal(tracker.position, toPosition(expected));
      }
      assert.ok(tracker.isIdle);
    }),
  );
});

test('processed entries are dropped: a million positions leave none', () => {
  const tracker = createCheckpointTracker();
  const window: number[] = [];
  let sizeMax = 0;
  for (let at = 1; at <= 1_000_000; at += 1) {
    window.push(tracker.add(toPosition(at)));
    // Half of the window finishes out of order.
    if (window.length === 256)
      for (const ticket of window.splice(0, 128).toReversed()) tracker.done(ticket);
    sizeMax = Math.max(sizeMax, tracker.size);
  }
  assert.ok(sizeMax <= 256, `${sizeMax}`);
  for (const ticket of window) tracker.done(ticket);
  assert.equal(tracker.position, toPosition(1_000_000) satisfies Position);
});
