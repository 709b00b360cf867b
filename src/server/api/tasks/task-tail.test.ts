// Follows running jobs and the progress of bulk actions over HTTP.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { body, openApi, until } from '../../../testing/support/server/api-rig.ts';
import {
  enqueue,
  eventsOf,
  running,
  report,
  accepted,
  type ReceivedEvent,
} from '../../../testing/support/server/task-rig.ts';

const folder = await mkdtemp(join(tmpdir(), 'millrace-tail-'));
after(() => rm(folder, { recursive: true, force: true }));

/** Collects events in the background until the stream ends. */
function listen(response: Response) {
  assert.equal(response.status, 200);
  const heard: ReceivedEvent[] = [];
  const over = (async () => {
    for await (const event of eventsOf(response)) heard.push(event);
  })();
  // The promise may reject before the test awaits it.
  over.catch(() => undefined);
  return { heard, over };
}

test('following a job sends its steps and its outcome, then closes the stream', async () => {
  // The memory engine has no streams to follow.
  await using api = await openApi({}, { store: `sqlite:${folder}/events.db` });
  const boss = await api.token('admin');
  const id = await enqueue(api, boss, { tenant: 'core' });
  const other = await enqueue(api, boss, { tenant: 'acme' });
  const ours = await api.token('read', 'core');
  const one = listen(await api.ask(`/api/v1/jobs/tail?id=${id}`, ours));
  const leaving = new AbortController();
  const tail = (path: string, token: string) => api.ask(path, token, { signal: leaving.signal });
  const type = listen(await tail('/api/v1/jobs/tail?type=email-send', boss));
  const tenant = listen(await tail('/api/v1/jobs/tail', ours));

  const [first, second] = [await running(api, boss), await running(api, boss)];
  const [job, stranger] = first.token.id === id ? [first, second] : [second, first];
  assert.equal(stranger.token.id, other);
  await accepted(report(api, boss, job, 'steps/start', { name: 'render' }));
  await until(() => one.heard.some(({ data }) => data['kind'] === 'step-started'));
  await accepted(report(api, boss, job, 'steps/finish', { name: 'render' }));
  await accepted(report(api, boss, job, 'progress', { percent: 50, message: 'half' }));
  await until(() => one.heard.some(({ data }) => data['percent'] === 50));
  await accepted(report(api, boss, stranger, 'complete'));
  await accepted(report(api, boss, job, 'complete', { result: 1 }));
  await one.over;
  assert.deepEqual(
    one.heard.map(({ event, data }) => [event, data['kind'] ?? data['state']]),
    [
      ['progress', 'step-started'],
      ['progress', 'step-completed'],
      ['progress', 'progress'],
      ['terminal', 'completed'],
    ],
  );
  assert.ok(one.heard.every(({ data }) => data['taskId'] === id));
  await until(() => type.heard.filter(({ event }) => event === 'terminal').length === 2);
  await until(() => tenant.heard.some(({ event }) => event === 'terminal'));
  // Signals of other tenants are not sent.
  assert.ok(tenant.heard.every(({ data }) => data['taskId'] === id));
  leaving.abort();
  await until(() => api.server.inFlight === 0);
  // The outcome of an ended job is sent immediately.
  const late = listen(await api.ask(`/api/v1/jobs/tail?id=${id}`, ours));
  await late.over;
  assert.deepEqual(
    late.heard.map(({ data }) => data['state']),
    ['completed'],
  );
});

const count = 2_500;

test('all jobs of a filter are cancelled and retried, with progress events', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const bulk = (from: number) => ({
    tasks: Array.from({ length: 500 }, (_, at) => ({
      type: 'email-send',
      tenant: (from + at) % 5 === 0 ? 'acme' : 'core',
      payload: { at: from + at },
    })),
  });
  for (let from = 0; from < count; from += 500) {
    assert.equal((await api.post('/api/v1/jobs/bulk', bulk(from), boss)).status, 200);
  }
  const stream = { accept: 'text/event-stream' };
  const filter = { type: 'email-send', state: ['queued'], reason: 'mistake' };
  const cancelled = listen(await api.post('/admin/jobs/cancel', filter, boss, stream));
  await cancelled.over;
  assert.deepEqual(cancelled.heard.at(-1), {
    event: 'done',
    data: { changed: count, skipped: 0 },
  });
  const steps = cancelled.heard.filter(({ event }) => event === 'progress');
  assert.ok(steps.length > 1, `${steps.length} times`);
  assert.ok(steps.every(({ data }) => data['matching'] === count));
  const changed = steps.map(({ data }) => Number(data['changed']));
  assert.deepEqual(
    changed,
    changed.toSorted((a, b) => a - b),
  );

  // Without the header there is one response, limited to the tenant.
  const acme = await api.token('admin', 'acme');
  const retried = await api.post('/admin/jobs/retry', { state: ['cancelled'] }, acme);
  assert.deepEqual(await body(retried), { changed: count / 5, skipped: 0 });
  // Errors before the start are an ordinary error response.
  const foreign = await api.post('/admin/jobs/retry', { tenant: 'core' }, acme, stream);
  assert.equal(foreign.status, 403);
  const nothing = await api.post('/admin/jobs/retry', {}, boss, stream);
  assert.equal(nothing.status, 400);
});

test('a disconnect stops the cancellation of jobs, and repeating the request continues it', async () => {
  await using api = await openApi();
  const boss = await api.token('admin');
  const tasks = Array.from({ length: 1_000 }, (_, at) => ({ type: 'email-send', payload: at }));
  for (let page = 0; page < 3; page += 1) await api.post('/api/v1/jobs/bulk', { tasks }, boss);
  const leaving = new AbortController();
  const response = await api.ask('/admin/jobs/cancel', boss, {
    method: 'POST',
    body: JSON.stringify({ type: 'email-send' }),
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    signal: leaving.signal,
  });
  for await (const { event } of eventsOf(response)) if (event === 'progress') break;
  leaving.abort();
  await until(() => api.server.inFlight === 0);
  const rest = await api.post('/admin/jobs/cancel', { type: 'email-send' }, boss);
  const { changed, skipped } = await body<{ changed: number; skipped: number }>(rest);
  assert.equal(changed + skipped, 3_000);
  assert.ok(skipped > 0);
});

test('a group gets every outcome over HTTP, resumes at its position, and is listed until it is deleted', async () => {
  await using api = await openApi({}, { store: `sqlite:${folder}/monitored.db` });
  const boss = await api.token('admin');
  const cancelled = async (): Promise<string> => {
    const id = await enqueue(api, boss);
    await accepted(api.post(`/admin/jobs/${id}/cancel`, {}, boss));
    return id;
  };
  /** Reads a number of outcomes, then disconnects. */
  const hear = async (wanted: number): Promise<readonly unknown[]> => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const ends = listen(await api.ask('/api/v1/jobs/ends?group=pager', boss, { signal }));
    await until(() => ends.heard.length >= wanted);
    // An outcome is acknowledged when the next one is requested.
    await until(async () => {
      const { items } = await body<{
        readonly items: readonly { name: string; lag: number; pending: number }[];
      }>(await api.ask('/api/v1/jobs/groups', boss));
      const pager = items.find(({ name }) => name === 'pager');
      return pager?.lag === 0 && pager.pending === 0;
    });
    leaving.abort();
    await until(() => api.server.inFlight === 0);
    return ends.heard.map(({ data }) => data['taskId']);
  };
  const [first, second] = [await cancelled(), await cancelled()];
  assert.deepEqual(new Set(await hear(2)), new Set([first, second]));
  const third = await cancelled();
  assert.deepEqual(await hear(1), [third]);
  const remove = (group: string): Promise<Response> =>
    api.post(`/admin/jobs/ends/${group}/forget`, undefined, boss);
  assert.deepEqual(await body(await remove('pager')), { deleted: true });
  assert.deepEqual(await body(await remove('pager')), { deleted: false });
  // Groups of the engine cannot be deleted.
  await until(async () => (await remove('email-send-orchestrator')).status === 400);
  for (const group of ['a.b', 'archiver']) {
    assert.equal((await api.ask(`/api/v1/jobs/ends?group=${group}`, boss)).status, 400, group);
  }
  const ours = await api.token('admin', 'core');
  assert.equal((await api.ask('/api/v1/jobs/ends', ours)).status, 403);
});
