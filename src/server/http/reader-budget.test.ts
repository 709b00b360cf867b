import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nextTurn } from '../../foundation/async/next-turn.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { rejectsWith } from '../../testing/assertions.ts';
import { createReaderBudget } from './reader-budget.ts';

const limits = { processBytes: 100, principalBytes: 60, loadBytes: 20, stalledMs: 1_000 };

function rig() {
  const clock = fakeClock({ nowMs: 0 });
  const budget = createReaderBudget(limits, clock);
  const disconnected: string[] = [];
  const open = (name: string, key: string, signal = new AbortController().signal) =>
    budget.open({ key, signal, disconnect: () => disconnected.push(name) });
  return { clock, budget, disconnected, open };
}

test('a load that finds no room waits until another response has been read', async () => {
  const { budget, open, disconnected } = rig();
  const unread = open('unread', 'a');
  unread.hold(50);
  const order: string[] = [];
  const loading = open('next', 'a').load(async () => order.push('loaded'));
  await nextTurn();
  assert.deepEqual(order, []);
  unread.hold(0);
  await loading;
  assert.deepEqual([order, disconnected, budget.used], [['loaded'], [], 0]);
});

test('a full principal does not delay another one', async () => {
  const { open } = rig();
  open('unread', 'a').hold(60);
  assert.equal(await open('other', 'b').load(async () => 7), 7);
});

test('loads of one principal run one after the other when only one has room', async () => {
  const { open } = rig();
  open('unread', 'a').hold(40);
  let running = 0;
  let most = 0;
  const load = async (): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    await nextTurn();
    running -= 1;
  };
  await Promise.all(['1', '2', '3'].map((name) => open(name, 'a').load(load)));
  assert.equal(most, 1);
});

test('without room, the client that has read nothing for longest is disconnected', async () => {
  const { clock, open, disconnected, budget } = rig();
  open('oldest', 'a').hold(20);
  await clock.advance(10);
  const reading = open('reading', 'a');
  reading.hold(30);
  open('other tenant', 'b').hold(20);
  const loading = open('next', 'a').load(async () => 'loaded');
  await clock.advance(500);
  reading.hold(29);
  assert.deepEqual(disconnected, []);
  await clock.advance(500);
  assert.equal(await loading, 'loaded');
  assert.deepEqual(disconnected, ['oldest']);
  assert.equal(budget.used, 49);
});

test('after a pause of the process, a client that has read is not disconnected', async () => {
  const { clock, open, disconnected } = rig();
  const reading = open('reading', 'a');
  reading.hold(50);
  const loading = open('next', 'a').load(async () => 'loaded');
  // As the event of a socket that became writable while the timer became due.
  setImmediate(() => reading.hold(40));
  await clock.advance(1_000);
  assert.equal(await loading, 'loaded');
  assert.deepEqual(disconnected, []);
});

test('clients that got more than fits without a load are disconnected as well', async () => {
  const { clock, open, disconnected, budget } = rig();
  for (const name of ['1', '2', '3', '4', '5', '6']) open(name, name).hold(20);
  assert.equal(budget.used, 120);
  await clock.advance(1_000);
  await nextTurn();
  assert.deepEqual([disconnected, budget.used], [['1'], 100]);
});

test('a client that leaves while it waits gives up its turn, and a failed load its memory', async () => {
  const { open, budget } = rig();
  const unread = open('unread', 'a');
  unread.hold(50);
  const leaving = new AbortController();
  const waiting = open('leaving', 'a', leaving.signal).load(async () => 'never');
  leaving.abort();
  await rejectsWith(() => waiting, 'ABORTED');
  unread[Symbol.dispose]();
  const failed = open('failed', 'a').load(() => Promise.reject(new Error('broken')));
  await assert.rejects(failed, /broken/);
  unread.hold(50);
  assert.equal(budget.used, 0, 'a closed reader holds nothing');
});
