// Enqueueing: stored fields, deduplication and validation.

import assert from 'node:assert/strict';
import { rejectsWith } from '../../assertions.ts';
import { taskIdOf } from '../../../tasks/rules/prepare-task.ts';
import { taskLimits } from '../../../tasks/task-limits.ts';
import {
  claimOne,
  claimSome,
  email,
  enqueueNumbers,
  nothingIn,
  numbered,
  report,
  stateOf,
  type TasksCases,
} from './fixture.ts';

export const enqueueCases: TasksCases = {
  async 'an enqueued job is stored with all its fields'(tasks, { clock }) {
    const trace = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
    const { id, isDuplicate } = await tasks.enqueue({
      type: email,
      payload: { to: 'c-1', deep: { list: [1, 2.5, null, 'ü'] } },
      tenant: 'acme',
      priority: 8,
      labels: { region: 'eu', source: 'signup' },
      correlationId: 'flow-1',
      causationId: 'event-1',
      trace,
    });
    assert.equal(isDuplicate, false);
    const task = (await tasks.get(id)) ?? assert.fail('missing');
    assert.equal(task.type, email);
    assert.equal(task.state, 'queued');
    assert.equal(task.tenant, 'acme');
    assert.equal(task.priority, 8);
    assert.deepEqual(task.payload, { to: 'c-1', deep: { list: [1, 2.5, null, 'ü'] } });
    assert.deepEqual(task.labels, { region: 'eu', source: 'signup' });
    assert.equal(task.correlationId, 'flow-1');
    assert.equal(task.causationId, 'event-1');
    assert.deepEqual(task.trace, trace);
    assert.equal(task.attempt, 1);
    assert.equal(task.enqueuedAt.getTime(), clock.now());
    assert.deepEqual(
      task.history.map(({ what }) => what),
      ['enqueued'],
    );
  },

  async 'an id starts with its type, and is unique'(tasks) {
    const { id } = await tasks.enqueue({ type: email, payload: null });
    assert.match(id, /^email-send\./);
    assert.equal(
      await tasks.get(id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))),
      undefined,
    );
  },

  async 'enqueues many jobs in one call, in order'(tasks) {
    const ids = await enqueueNumbers(tasks, 250);
    assert.equal(new Set(ids).size, 250);
    const claimed = [];
    for (let n = 0; n < 3; n += 1) claimed.push(...(await claimSome(tasks, 100)));
    assert.deepEqual(
      claimed.map(({ task }) => task.id),
      ids,
    );
  },

  async 'a key is unique per tenant and type'(tasks) {
    const task = { type: email, payload: { n: 1 }, key: 'welcome' };
    const first = await tasks.enqueue(task);
    const again = await tasks.enqueue({ ...task, payload: { n: 2 } });
    assert.deepEqual(again, { id: first.id, isDuplicate: true });
    assert.deepEqual((await tasks.get(first.id))?.payload, { n: 1 });
    assert.equal(first.id, taskIdOf({ type: email, key: 'welcome' }));
    const others = await tasks.enqueueMany([
      { ...task, tenant: 'acme' },
      { ...task, type: report },
    ]);
    assert.deepEqual(
      others.map(({ isDuplicate }) => isDuplicate),
      [false, false],
    );
  },

  async 'a key that occurs twice in one call creates one job'(tasks) {
    const task = { type: email, payload: null, key: 'twice' };
    const [first, second] = await tasks.enqueueMany([task, task]);
    assert.equal(first?.id, second?.id);
    assert.equal(second?.isDuplicate, true);
    assert.equal((await claimSome(tasks, 10)).length, 1);
  },

  async 'a key stays taken after its job has ended'(tasks) {
    const task = { type: email, payload: null, key: 'done' };
    await tasks.enqueue(task);
    await tasks.complete((await claimOne(tasks)).token);
    assert.equal((await tasks.enqueue(task)).isDuplicate, true);
    await nothingIn(tasks);
  },

  async 'a key can be used again after its dedupe window'(tasks, { clock }) {
    const task = { type: 'windowed', payload: null, key: 'digest' };
    const first = await tasks.enqueue(task);
    await clock.advance(59_000);
    assert.deepEqual(await tasks.enqueue(task), { id: first.id, isDuplicate: true });
    await clock.advance(1_001);
    const next = await tasks.enqueue(task);
    assert.equal(next.isDuplicate, false);
    assert.notEqual(next.id, first.id);
  },

  async 'the dedupe window of a job overrides that of its type'(tasks, { clock }) {
    const task = { type: 'windowed', payload: null, key: 'k', dedupeWindowMs: 1_000 };
    await tasks.enqueue(task);
    await clock.advance(1_001);
    assert.equal((await tasks.enqueue(task)).isDuplicate, false);
  },

  async 'a delayed job is scheduled and due at its time'(tasks, { clock }) {
    const { id } = await tasks.enqueue({ type: email, payload: { n: 1 }, delayMs: 60_000 });
    const task = (await tasks.get(id)) ?? assert.fail('missing');
    assert.equal(task.state, 'scheduled');
    assert.equal(task.dueAt?.getTime(), clock.now() + 60_000);
    await nothingIn(tasks);
    await clock.advance(59_999);
    await nothingIn(tasks);
    await clock.advance(1);
    assert.equal((await claimOne(tasks)).task.id, id);
  },

  async 'a run time in the past means now'(tasks, { clock }) {
    const { id } = await tasks.enqueue({
      type: email,
      payload: { n: 1 },
      runAt: new Date(clock.now() - 5_000),
    });
    assert.equal(await stateOf(tasks, id), 'queued');
    assert.equal((await claimOne(tasks)).task.id, id);
  },

  async 'rejects a job that is not JSON, too large or of an unknown type before storing anything'(
    tasks,
  ) {
    const bad = { type: email, payload: { n: Number.NaN } };
    await rejectsWith(() => tasks.enqueueMany([...numbered(2), bad]), 'PAYLOAD_NOT_JSON');
    const large = 'x'.repeat(taskLimits.valueBytesMax);
    await rejectsWith(() => tasks.enqueue({ type: email, payload: large }), 'PAYLOAD_TOO_LARGE');
    await rejectsWith(() => tasks.enqueue({ type: 'no-such', payload: 1 }), 'TASK_TYPE_UNKNOWN');
    await nothingIn(tasks);
  },

  async 'rejects invalid fields by name'(tasks) {
    const invalid = {
      priority: { priority: 10 },
      delayMs: { delayMs: -1 },
      key: { key: '' },
      labels: { labels: { 'not allowed': 'x' } },
      tenant: { tenant: 'line\nbreak' },
      runAt: { runAt: new Date(Number.NaN) },
    };
    for (const [field, part] of Object.entries(invalid)) {
      const work = () => tasks.enqueue({ type: email, payload: 1, ...part });
      const error = await rejectsWith(work, 'TASK_INVALID');
      assert.equal(error.details['field'], field);
    }
  },

  async 'stores a payload of the maximum size'(tasks) {
    const text = 'y'.repeat(taskLimits.valueBytesMax - 100);
    await tasks.enqueue({ type: email, payload: { text } });
    const { task } = await claimOne(tasks);
    assert.deepEqual(task.payload, { text });
  },

  async 'the queue stream gets a signal for a due job only'(tasks, { opened }) {
    const { id } = await tasks.enqueue({ type: email, payload: 1 });
    await tasks.enqueue({ type: email, payload: 1, delayMs: 1_000 });
    const signals = await opened.stream('gbe.tasks.email-send.queue');
    assert.deepEqual(
      signals.map(({ payload }) => payload),
      [{ taskId: id, type: email, priority: 5 }],
    );
  },
};
