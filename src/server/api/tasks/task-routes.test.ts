// Jobs over HTTP: enqueued, queried, and run by a worker that uses only the protocol.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { body, openApi, until } from '../../../testing/support/server/api-rig.ts';
import {
  claim,
  enqueue,
  report,
  type Enqueued,
  type Shown,
} from '../../../testing/support/server/task-rig.ts';

test('a job is enqueued, claimed by a worker in any language, and completed with a result', async () => {
  await using api = await openApi();
  const [sender, reader, worker] = await Promise.all([
    api.token('append', 'core'),
    api.token('read', 'core'),
    api.token('work'),
  ]);
  const id = await enqueue(api, sender, { key: 'welcome-c-1', labels: { campaign: 'spring' } });
  const again = await api.post(
    '/api/v1/jobs',
    { type: 'email-send', payload: {}, key: 'welcome-c-1' },
    sender,
  );
  assert.equal(again.status, 200);
  assert.deepEqual(await body<Enqueued>(again), { id, isDuplicate: true });

  const pending = await api.ask(`/api/v1/jobs/${id}/result`, reader);
  assert.equal(pending.status, 202);
  const [job] = await claim(api, worker);
  assert.ok(job !== undefined);
  assert.deepEqual(job.task.payload, { to: 'c-1' });
  assert.equal((await report(api, worker, job, 'steps/start', { name: 'render' })).status, 200);
  const finished = { name: 'render', result: { bytes: 12 } };
  assert.equal((await report(api, worker, job, 'steps/finish', finished)).status, 200);
  assert.equal((await report(api, worker, job, 'progress', { percent: 50 })).status, 200);
  const beat = await api.post(
    '/api/v1/worker/heartbeat',
    { worker: 'py-1', tokens: [job.token, { id, fence: 99 }] },
    worker,
  );
  const { items } = await body<{ readonly items: readonly { readonly state: string }[] }>(beat);
  assert.deepEqual(
    items.map(({ state }) => state),
    ['claimed', 'lost'],
  );
  assert.equal(
    (await report(api, worker, job, 'complete', { result: { sent: true } })).status,
    200,
  );

  const result = await api.ask(`/api/v1/jobs/${id}/result?waitMs=1000`, reader);
  assert.equal(result.status, 200);
  assert.deepEqual(await body(result), { id, state: 'completed', result: { sent: true } });
  const shown = await body<Shown>(await api.ask(`/api/v1/jobs/${id}`, reader));
  assert.deepEqual(
    shown.task.steps.map(({ name, state }) => [name, state]),
    [['render', 'completed']],
  );
  const whats = shown.timeline.map(({ what }) => what);
  for (const what of ['enqueued', 'claimed', 'step started', 'step completed', 'completed']) {
    assert.ok(whats.includes(what), `${what} of ${whats.join(', ')}`);
  }
  const list = await api.ask('/api/v1/jobs?state=completed&label=campaign%3Dspring', reader);
  const page = await body<{ readonly items: readonly Shown['task'][] }>(list);
  assert.deepEqual(
    page.items.map((each) => each.id),
    [id],
  );
});

test('rejects a request with an outdated fence token and changes nothing', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const [old] = await claim(api, boss, 'w-1');
  assert.ok(old !== undefined);
  assert.equal((await report(api, boss, old, 'release')).status, 200);
  const [job] = await claim(api, boss, 'w-2');
  assert.ok(job !== undefined);
  const late = await report(api, boss, old, 'complete', { result: 'old' });
  assert.equal(late.status, 409);
  assert.equal((await body<{ readonly code: string }>(late)).code, 'TASK_STALE');
  assert.equal((await report(api, boss, job, 'complete', { result: 'new' })).status, 200);
  const shown = await body<Shown>(await api.ask(`/api/v1/jobs/${id}`, boss));
  assert.equal(shown.task.result, 'new');
});

test('jobs of other tenants count as unknown', async () => {
  await using api = await openApi();
  const [theirs, ours] = await Promise.all([
    api.token('append', 'acme'),
    api.token('admin', 'core'),
  ]);
  const id = await enqueue(api, theirs);
  const own = await enqueue(api, ours);
  const requests = [
    api.ask(`/api/v1/jobs/${id}`, ours),
    api.ask(`/api/v1/jobs/${id}/result`, ours),
    api.ask(`/api/v1/jobs/tail?id=${id}`, ours),
    api.post(`/api/v1/jobs/${id}/events`, { name: 'approved' }, ours),
    api.post(`/admin/jobs/${id}/cancel`, {}, ours),
    api.post(`/admin/jobs/${id}/retry`, {}, ours),
  ];
  for (const response of await Promise.all(requests))
    assert.equal(response.status, 404, response.url);
  const list = await body<{ readonly items: readonly Shown['task'][] }>(
    await api.ask('/api/v1/jobs', ours),
  );
  assert.deepEqual(
    list.items.map((each) => each.id),
    [own],
  );
  const forbidden = [
    api.ask('/api/v1/jobs?tenant=acme', ours),
    api.post('/api/v1/jobs', { type: 'email-send', payload: {}, tenant: 'acme' }, ours),
    api.post('/admin/jobs/cancel', { tenant: 'acme' }, ours),
    api.ask('/api/v1/jobs/counts', ours),
    api.ask('/api/v1/jobs/workers', ours),
    api.post('/admin/jobs/types/email-send/pause', undefined, ours),
    // Workers have access to the jobs of all tenants.
    api.post('/api/v1/worker/claim', { worker: 'w', types: { 'email-send': 1 } }, ours),
    api.post('/api/v1/worker/heartbeat', { worker: 'w' }, ours),
    api.post(`/api/v1/worker/jobs/${own}/complete`, { fence: 1 }, ours),
  ];
  for (const response of await Promise.all(forbidden))
    assert.equal(response.status, 403, response.url);
  const all = await api.post('/admin/jobs/cancel', { all: true }, ours);
  assert.deepEqual(await body(all), { changed: 1, skipped: 0 });
  const boss = await api.token('admin');
  const untouched = await body<Shown>(await api.ask(`/api/v1/jobs/${id}`, boss));
  assert.equal(untouched.task.state, 'queued');
});

test('the scope work allows the worker protocol and nothing else', async () => {
  await using api = await openApi();
  const [worker, reader] = await Promise.all([api.token('work'), api.token('read')]);
  assert.equal((await api.ask('/api/v1/jobs', worker)).status, 403);
  assert.equal((await api.ask('/api/v1/events', worker)).status, 403);
  const claims = { worker: 'w', types: { 'email-send': 1 }, waitMs: 0 };
  assert.equal((await api.post('/api/v1/worker/claim', claims, reader)).status, 403);
  assert.equal((await api.post('/api/v1/worker/claim', claims, worker)).status, 200);
});

test('admins cancel, retry and pause, and all actions are audited', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const id = await enqueue(api, boss);
  const cancelled = await api.post(`/admin/jobs/${id}/cancel`, { reason: 'mistake' }, boss);
  assert.equal((await body<Shown>(cancelled)).task.state, 'cancelled');
  const retried = await api.post(`/admin/jobs/${id}/retry`, {}, boss);
  assert.equal((await body<Shown>(retried)).task.state, 'queued');
  const paused = await api.post('/admin/jobs/types/email-send/pause', undefined, boss);
  assert.deepEqual(await body(paused), { type: 'email-send', mode: 'paused' });
  assert.equal((await claim(api, boss)).length, 0);
  await api.post('/admin/jobs/types/email-send/drain', undefined, boss);
  const rejected = await api.post('/api/v1/jobs', { type: 'email-send', payload: 1 }, boss);
  assert.equal(rejected.status, 409);
  await api.post('/admin/jobs/types/email-send/resume', undefined, boss);
  assert.equal((await claim(api, boss)).length, 1);
  const bulk = await api.post('/admin/jobs/retry', {}, boss);
  assert.equal(bulk.status, 400);
  const audit = await api.ask('/admin/audit', boss);
  const { items } = await body<{ readonly items: readonly { readonly action: string }[] }>(audit);
  assert.deepEqual(items.map(({ action }) => action).toSorted(), [
    'task.cancel',
    'task.drain',
    'task.pause',
    'task.resume',
    'task.retry',
  ]);
});

test('a worker that disconnects while it waits gets no job', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const leaving = new AbortController();
  const claiming = api.ask('/api/v1/worker/claim', boss, {
    method: 'POST',
    body: JSON.stringify({ worker: 'disconnected', types: { 'email-send': 1 }, waitMs: 20_000 }),
    headers: { 'content-type': 'application/json' },
    signal: leaving.signal,
  });
  await until(() => api.server.inFlight === 1);
  leaving.abort();
  await assert.rejects(claiming);
  await until(() => api.server.inFlight === 0);
  const id = await enqueue(api, boss);
  const [job] = await claim(api, boss, 'next');
  assert.equal(job?.token.id, id);
});
