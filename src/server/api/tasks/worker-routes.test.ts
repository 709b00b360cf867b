// What a worker of any language says of a job beside its end: steps that fail, sleeps, events, children.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi } from '../../../testing/support/server/api-rig.ts';
import {
  claim,
  enqueue,
  running,
  say,
  shown,
  told,
} from '../../../testing/support/server/task-rig.ts';

const soon = (ms: number): string => new Date(Date.now() + ms).toISOString();

test('a step that fails is tried again as often as it says, then the attempt is over', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const failing = {
    name: 'send',
    failure: { message: 'busy', code: 'SMTP_451' },
    retries: 1,
    retryAfterMs: 1,
  };
  const first = await running(api, boss, { worker: 'w-1' });
  await told(say(api, boss, first, 'steps/start', { name: 'send' }));
  assert.deepEqual(await told(say(api, boss, first, 'steps/fail', failing)), { isRetried: true });
  // The worker is free, the job is not its own any more.
  const late = await say(api, boss, first, 'steps/start', { name: 'send' });
  assert.equal(late.status, 409);

  const second = await running(api, boss, { worker: 'w-2' });
  assert.ok(second.token.fence > first.token.fence);
  await told(say(api, boss, second, 'steps/start', { name: 'send' }));
  assert.deepEqual(await told(say(api, boss, second, 'steps/fail', failing)), { isRetried: false });
  await told(say(api, boss, second, 'fail', { failure: { message: 'send failed' } }));
  // Its type has no retries.
  const { state, error, steps } = await shown(api, boss, id);
  assert.deepEqual([state, error?.message], ['failed', 'send failed']);
  assert.deepEqual(
    steps.map(({ name, state: of, attempts }) => [name, of, attempts]),
    [['send', 'failed', 2]],
  );
});

test('an attempt that failed comes back while its type has retries, its finished steps with it', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { type: 'report-gen' });
  const first = await running(api, boss, { type: 'report-gen' });
  await told(say(api, boss, first, 'steps/start', { name: 'load' }));
  await told(say(api, boss, first, 'steps/finish', { name: 'load', result: [1, 2] }));
  const failure = { failure: { message: 'no paper' }, retryAfterMs: 1 };
  await told(say(api, boss, first, 'fail', failure));
  const second = await running(api, boss, { type: 'report-gen', worker: 'w-2' });
  assert.deepEqual(
    second.task.steps.map(({ name, result }) => [name, result]),
    [['load', [1, 2]]],
  );
  const terminal = { failure: { message: 'out of order', isTerminal: true } };
  await told(say(api, boss, second, 'fail', terminal));
  assert.equal((await shown(api, boss, id)).state, 'failed');
});

test('a sleep lets the worker go, and a claim brings the job back when it is over', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const long = await enqueue(api, boss);
  const sleeping = await running(api, boss, { worker: 'w-1' });
  const rest = await told(
    say(api, boss, sleeping, 'sleep', { name: 'rest', until: soon(600_000) }),
  );
  assert.deepEqual(rest, { kind: 'released' });
  assert.equal((await shown(api, boss, long)).state, 'waiting');
  assert.equal((await claim(api, boss, 'w-2')).length, 0);

  const id = await enqueue(api, boss);
  const first = await running(api, boss, { worker: 'w-1' });
  const nap = await told<{ kind: string }>(
    say(api, boss, first, 'sleep', { name: 'nap', until: soon(200) }),
  );
  // On a busy machine it may be over when the server gets the request.
  const second = nap.kind === 'over' ? first : await running(api, boss, { worker: 'w-2' });
  // Said again, as a handler does that runs from its start: it is over, and the worker goes on.
  const again = await told(say(api, boss, second, 'sleep', { name: 'nap', until: soon(200) }));
  assert.deepEqual(again, { kind: 'over' });
  await told(say(api, boss, second, 'complete', { result: 'rested' }));
  const { state, steps } = await shown(api, boss, id);
  assert.equal(state, 'completed');
  assert.deepEqual(
    steps.map(({ name, kind }) => [name, kind]),
    [['nap', 'sleep']],
  );
});

test('an event wakes a job that waits for it, and one that came before is there', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const wanted = { name: 'approval', event: 'approved', timeoutMs: 60_000 };
  const first = await running(api, boss, { worker: 'w-1' });
  assert.deepEqual(await told(say(api, boss, first, 'wait-for-event', wanted)), {
    kind: 'released',
  });
  const other = await api.post(`/api/v1/jobs/${id}/events`, { name: 'rejected' }, boss);
  assert.equal(other.status, 202);
  assert.equal((await claim(api, boss, 'w-2')).length, 0);
  const event = { name: 'approved', payload: { by: 'ada' }, eventId: 'e-1' };
  assert.equal((await api.post(`/api/v1/jobs/${id}/events`, event, boss)).status, 202);
  assert.equal((await api.post(`/api/v1/jobs/${id}/events`, event, boss)).status, 202);
  const second = await running(api, boss, { worker: 'w-2' });
  assert.deepEqual(await told(say(api, boss, second, 'wait-for-event', wanted)), {
    kind: 'event',
    payload: { by: 'ada' },
  });
  const early = { name: 'refusal', event: 'rejected' };
  const there = await told<{ kind: string }>(say(api, boss, second, 'wait-for-event', early));
  assert.equal(there.kind, 'event');
  const never = { name: 'second', event: 'approved', timeoutMs: 1 };
  assert.deepEqual(await told(say(api, boss, second, 'wait-for-event', never)), {
    kind: 'released',
  });
  const third = await running(api, boss, { worker: 'w-3' });
  assert.deepEqual(await told(say(api, boss, third, 'wait-for-event', never)), { kind: 'timeout' });
  await told(say(api, boss, third, 'complete'));
  const over = await api.post(`/api/v1/jobs/${id}/events`, event, boss);
  assert.equal(over.status, 409);
});

test('a parent fans out to children, sleeps, and goes on with what became of each', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { type: 'report-gen', tenant: 'core' });
  const children = {
    name: 'mails',
    tasks: ['a', 'b', 'c'].map((to) => ({ type: 'email-send', payload: { to } })),
  };
  const parent = await running(api, boss, { type: 'report-gen' });
  assert.deepEqual(await told(say(api, boss, parent, 'children', children)), { kind: 'released' });
  const listed = await api.ask(`/api/v1/jobs?parentId=${id}`, boss);
  assert.equal((await body<{ readonly items: readonly unknown[] }>(listed)).items.length, 3);
  for (const end of ['complete', 'complete', 'fail']) {
    assert.equal((await claim(api, boss, 'w', { types: { 'report-gen': 1 } })).length, 0);
    const child = await running(api, boss, { worker: 'w-2' });
    const { to } = child.task.payload as { readonly to: string };
    const said = end === 'fail' ? { failure: { message: 'bounced' } } : { result: `sent ${to}` };
    await told(say(api, boss, child, end, said));
  }
  const again = await running(api, boss, { type: 'report-gen', worker: 'w-3' });
  const { kind, children: ended } = await told<{
    readonly kind: string;
    readonly children: readonly { readonly state: string; readonly result?: string }[];
  }>(say(api, boss, again, 'children', children));
  assert.equal(kind, 'ended');
  assert.deepEqual(ended.map(({ state }) => state).toSorted(), [
    'completed',
    'completed',
    'failed',
  ]);
  await told(say(api, boss, again, 'complete', { result: ended.length }));
  // A repeated request enqueued nothing twice.
  const all = await api.ask('/api/v1/jobs?type=email-send', boss);
  assert.equal((await body<{ readonly items: readonly unknown[] }>(all)).items.length, 3);
});

test('what was done is undone by whoever claims it next, when a job is cancelled while it runs', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const job = await running(api, boss, { worker: 'w-1' });
  await told(say(api, boss, job, 'steps/start', { name: 'book' }));
  const booked = { name: 'book', result: 'seat 7', isCompensable: true };
  await told(say(api, boss, job, 'steps/finish', booked));
  assert.equal((await api.post(`/admin/jobs/${id}/cancel`, {}, boss)).status, 200);
  const beat = await told<{ items: readonly { state: string; cancelAt?: string }[] }>(
    api.post('/api/v1/worker/heartbeat', { worker: 'w-1', tokens: [job.token] }, boss),
  );
  assert.equal(beat.items[0]?.state, 'held');
  assert.match(beat.items[0]?.cancelAt ?? '', /^\d{4}-/);
  await told(say(api, boss, job, 'cancelled'));
  const undoing = await running(api, boss, { worker: 'w-2' });
  assert.equal(undoing.task.endsAs, 'cancelled');
  const undo = { name: 'undo:book', kind: 'compensation' };
  await told(say(api, boss, undoing, 'steps/start', undo));
  await told(say(api, boss, undoing, 'steps/finish', undo));
  await told(say(api, boss, undoing, 'compensated'));
  assert.equal((await shown(api, boss, id)).state, 'cancelled');
});

test('a worker that leaves gives what it held to others at once', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { type: 'report-gen' });
  await running(api, boss, { type: 'report-gen', worker: 'w-1' });
  await told(api.post('/api/v1/worker/leave', { worker: 'w-1' }, boss));
  // The sweeper of the platform finds it: its worker is gone.
  const next = await running(api, boss, { type: 'report-gen', worker: 'w-2' });
  assert.equal(next.token.id, id);
});
