// The worker protocol beyond completion: failed steps, sleeps, events, child jobs and compensation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi } from '../../../testing/support/server/api-rig.ts';
import {
  claim,
  enqueue,
  running,
  report,
  shown,
  accepted,
} from '../../../testing/support/server/task-rig.ts';

const soon = (ms: number): string => new Date(Date.now() + ms).toISOString();

test('a claim ends with the job that makes its response large, and no type keeps out another', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const payload = { text: 'x'.repeat(200_000) };
  const ids: string[] = [];
  for (let count = 0; count < 20; count += 1) ids.push(await enqueue(api, boss, { payload }));
  const small = await enqueue(api, boss, { type: 'report-gen' });
  const seen: string[] = [];
  for (let round = 0; seen.length < 21; round += 1) {
    const types = { 'email-send': 100, 'report-gen': 100 };
    const found = (await claim(api, boss, 'w-1', { types })).map(({ token }) => token.id);
    assert.ok(found.length > 0 && found.length <= 8, `${found.length} jobs of 200 KB`);
    seen.push(...found);
    if (round === 0) assert.ok(seen.includes(small));
  }
  assert.deepEqual(seen.toSorted(), [...ids, small].toSorted());
});

test('a claim of many small jobs keeps to the limits of the request', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  for (let count = 0; count < 12; count += 1) await enqueue(api, boss);
  const types = { 'email-send': 9, 'report-gen': 5 };
  assert.equal((await claim(api, boss, 'w-1', { types })).length, 9);
  assert.equal((await claim(api, boss, 'w-1', { types })).length, 3);
});

test('a job refuses events and results above 2 MB, and its worker can still end it', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const text = 'x'.repeat(250_000);
  const waiting = await enqueue(api, boss);
  const send = (eventId: string) =>
    api.post(`/api/v1/jobs/${waiting}/events`, { name: 'noted', eventId, payload: text }, boss);
  for (let count = 0; count < 7; count += 1) {
    assert.equal((await send(`e-${count}`)).status, 202);
  }
  assert.equal((await send('e-0')).status, 202, 'an event that the job has');
  const first = await running(api, boss);
  const finish = { name: 'sum', result: text };
  const refused = [await send('e-7'), await report(api, boss, first, 'steps/finish', finish)];
  for (const response of refused) {
    assert.equal(response.status, 400);
    assert.equal((await body<{ code: string }>(response)).code, 'TASK_INVALID');
  }
  await accepted(report(api, boss, first, 'complete', { result: text }));
  assert.equal((await shown(api, boss, waiting)).state, 'completed');
});

test('a failed step is retried as often as requested, then the attempt fails', async () => {
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
  await accepted(report(api, boss, first, 'steps/start', { name: 'send' }));
  assert.deepEqual(await accepted(report(api, boss, first, 'steps/fail', failing)), {
    isRetried: true,
  });
  // The retry released the job, so the old fence token is outdated.
  const late = await report(api, boss, first, 'steps/start', { name: 'send' });
  assert.equal(late.status, 409);

  const second = await running(api, boss, { worker: 'w-2' });
  assert.ok(second.token.fence > first.token.fence);
  await accepted(report(api, boss, second, 'steps/start', { name: 'send' }));
  assert.deepEqual(await accepted(report(api, boss, second, 'steps/fail', failing)), {
    isRetried: false,
  });
  await accepted(report(api, boss, second, 'fail', { failure: { message: 'send failed' } }));
  // The task type has no retries.
  const { state, error, steps } = await shown(api, boss, id);
  assert.deepEqual([state, error?.message], ['failed', 'send failed']);
  assert.deepEqual(
    steps.map(({ name, state: of, attempts }) => [name, of, attempts]),
    [['send', 'failed', 2]],
  );
});

test('a failed attempt is retried with its completed steps while its type has retries', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { type: 'report-gen' });
  const first = await running(api, boss, { type: 'report-gen' });
  await accepted(report(api, boss, first, 'steps/start', { name: 'load' }));
  await accepted(report(api, boss, first, 'steps/finish', { name: 'load', result: [1, 2] }));
  const failure = { failure: { message: 'no paper' }, retryAfterMs: 1 };
  await accepted(report(api, boss, first, 'fail', failure));
  const second = await running(api, boss, { type: 'report-gen', worker: 'w-2' });
  assert.deepEqual(
    second.task.steps.map(({ name, result }) => [name, result]),
    [['load', [1, 2]]],
  );
  const terminal = { failure: { message: 'out of order', isTerminal: true } };
  await accepted(report(api, boss, second, 'fail', terminal));
  assert.equal((await shown(api, boss, id)).state, 'failed');
});

test('a sleep releases the job, which can be claimed when the sleep is over', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const long = await enqueue(api, boss);
  const sleeping = await running(api, boss, { worker: 'w-1' });
  const rest = await accepted(
    report(api, boss, sleeping, 'sleep', { name: 'rest', until: soon(600_000) }),
  );
  assert.deepEqual(rest, { kind: 'released' });
  assert.equal((await shown(api, boss, long)).state, 'waiting');
  assert.equal((await claim(api, boss, 'w-2')).length, 0);

  const id = await enqueue(api, boss);
  const first = await running(api, boss, { worker: 'w-1' });
  const nap = await accepted<{ kind: string }>(
    report(api, boss, first, 'sleep', { name: 'nap', until: soon(200) }),
  );
  // On a busy machine the time may have passed when the server gets the request.
  const second = nap.kind === 'over' ? first : await running(api, boss, { worker: 'w-2' });
  // A handler that runs again from its start repeats the request: the sleep is over.
  const again = await accepted(
    report(api, boss, second, 'sleep', { name: 'nap', until: soon(200) }),
  );
  assert.deepEqual(again, { kind: 'over' });
  await accepted(report(api, boss, second, 'complete', { result: 'rested' }));
  const { state, steps } = await shown(api, boss, id);
  assert.equal(state, 'completed');
  assert.deepEqual(
    steps.map(({ name, kind }) => [name, kind]),
    [['nap', 'sleep']],
  );
});

test('an event wakes a waiting job, and an earlier event is returned immediately', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const wanted = { name: 'approval', event: 'approved', timeoutMs: 60_000 };
  const first = await running(api, boss, { worker: 'w-1' });
  assert.deepEqual(await accepted(report(api, boss, first, 'wait-for-event', wanted)), {
    kind: 'released',
  });
  const other = await api.post(`/api/v1/jobs/${id}/events`, { name: 'rejected' }, boss);
  assert.equal(other.status, 202);
  assert.equal((await claim(api, boss, 'w-2')).length, 0);
  const event = { name: 'approved', payload: { by: 'ada' }, eventId: 'e-1' };
  assert.equal((await api.post(`/api/v1/jobs/${id}/events`, event, boss)).status, 202);
  assert.equal((await api.post(`/api/v1/jobs/${id}/events`, event, boss)).status, 202);
  const second = await running(api, boss, { worker: 'w-2' });
  assert.deepEqual(await accepted(report(api, boss, second, 'wait-for-event', wanted)), {
    kind: 'event',
    payload: { by: 'ada' },
  });
  const early = { name: 'refusal', event: 'rejected' };
  const there = await accepted<{ kind: string }>(
    report(api, boss, second, 'wait-for-event', early),
  );
  assert.equal(there.kind, 'event');
  const never = { name: 'second', event: 'approved', timeoutMs: 1 };
  assert.deepEqual(await accepted(report(api, boss, second, 'wait-for-event', never)), {
    kind: 'released',
  });
  const third = await running(api, boss, { worker: 'w-3' });
  assert.deepEqual(await accepted(report(api, boss, third, 'wait-for-event', never)), {
    kind: 'timeout',
  });
  await accepted(report(api, boss, third, 'complete'));
  const over = await api.post(`/api/v1/jobs/${id}/events`, event, boss);
  assert.equal(over.status, 409);
});

test('a parent enqueues children, is released, and continues with their outcomes', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { type: 'report-gen', tenant: 'core' });
  const children = {
    name: 'mails',
    tasks: ['a', 'b', 'c'].map((to) => ({ type: 'email-send', payload: { to } })),
  };
  const parent = await running(api, boss, { type: 'report-gen' });
  assert.deepEqual(await accepted(report(api, boss, parent, 'children', children)), {
    kind: 'released',
  });
  const listed = await api.ask(`/api/v1/jobs?parentId=${id}`, boss);
  assert.equal((await body<{ readonly items: readonly unknown[] }>(listed)).items.length, 3);
  for (const end of ['complete', 'complete', 'fail']) {
    assert.equal((await claim(api, boss, 'w', { types: { 'report-gen': 1 } })).length, 0);
    const child = await running(api, boss, { worker: 'w-2' });
    const { to } = child.task.payload as { readonly to: string };
    const said = end === 'fail' ? { failure: { message: 'bounced' } } : { result: `sent ${to}` };
    await accepted(report(api, boss, child, end, said));
  }
  const again = await running(api, boss, { type: 'report-gen', worker: 'w-3' });
  const { kind, children: ended } = await accepted<{
    readonly kind: string;
    readonly children: readonly { readonly state: string; readonly result?: string }[];
  }>(report(api, boss, again, 'children', children));
  assert.equal(kind, 'ended');
  assert.deepEqual(ended.map(({ state }) => state).toSorted(), [
    'completed',
    'completed',
    'failed',
  ]);
  await accepted(report(api, boss, again, 'complete', { result: ended.length }));
  // The repeated request enqueued no duplicates.
  const all = await api.ask('/api/v1/jobs?type=email-send', boss);
  assert.equal((await body<{ readonly items: readonly unknown[] }>(all)).items.length, 3);
});

test('the next claim compensates the completed steps of a cancelled job', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const job = await running(api, boss, { worker: 'w-1' });
  await accepted(report(api, boss, job, 'steps/start', { name: 'book' }));
  const booked = { name: 'book', result: 'seat 7', isCompensable: true };
  await accepted(report(api, boss, job, 'steps/finish', booked));
  assert.equal((await api.post(`/admin/jobs/${id}/cancel`, {}, boss)).status, 200);
  const beat = await accepted<{ items: readonly { state: string; cancelAt?: string }[] }>(
    api.post('/api/v1/worker/heartbeat', { worker: 'w-1', tokens: [job.token] }, boss),
  );
  assert.equal(beat.items[0]?.state, 'claimed');
  assert.match(beat.items[0]?.cancelAt ?? '', /^\d{4}-/);
  await accepted(report(api, boss, job, 'cancelled'));
  const undoing = await running(api, boss, { worker: 'w-2' });
  assert.equal(undoing.task.endsAs, 'cancelled');
  const undo = { name: 'undo:book', kind: 'compensation' };
  await accepted(report(api, boss, undoing, 'steps/start', undo));
  await accepted(report(api, boss, undoing, 'steps/finish', undo));
  await accepted(report(api, boss, undoing, 'compensated'));
  assert.equal((await shown(api, boss, id)).state, 'cancelled');
});

test('deregistering a worker releases its jobs immediately', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { type: 'report-gen' });
  await running(api, boss, { type: 'report-gen', worker: 'w-1' });
  await accepted(api.post('/api/v1/worker/leave', { worker: 'w-1' }, boss));
  // The sweeper of the platform releases jobs of deregistered workers.
  const next = await running(api, boss, { type: 'report-gen', worker: 'w-2' });
  assert.equal(next.token.id, id);
});
