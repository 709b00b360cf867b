// Tasks of a platform: handlers of modules, and types that follow their file.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { task } from '../tasks/index.ts';
import { createPlatform, defineModule } from './index.ts';
import { resolveRoles, type EngineUrls } from './engines/resolve-roles.ts';

test('jobs are in the engine of the bus by default', () => {
  const tasksUrlOf = (urls: EngineUrls): string | undefined => {
    const roles = resolveRoles({ urls, needs: { tasks: 'required' } });
    return roles.find(({ role }) => role === 'tasks')?.target?.connection;
  };
  const store = 'sqlite:/a/events.db';
  assert.equal(tasksUrlOf({ store }), store);
  assert.equal(tasksUrlOf({ store, bus: 'redis://h' }), 'redis://h');
  assert.equal(tasksUrlOf({ store, bus: 'redis://h', tasks: 'nats://n' }), 'nats://n');
  assert.equal(tasksUrlOf({ store: 'memory:' }), 'memory:');
  const local = `sqlite:${join(process.cwd(), '.millrace/local.db')}`;
  assert.equal(tasksUrlOf({ store: 'postgres://h/d' }), local);
});

test('a module runs the jobs of its handlers, with steps', async () => {
  const greet = task('greet', async (ctx) => {
    const name = await ctx.step('look-up', () => 'Ada');
    return ctx.step('say', () => `Hello, ${name}`);
  });
  await using platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [defineModule({ name: 'house', tasks: [greet] })],
  });
  assert.equal(platform.taskCounts(), undefined);
  await platform.start();
  const tasks = await platform.tasks();
  const { id } = await tasks.enqueue(greet.job({}));
  const ended = await tasks.whenEnded(id, { timeoutMs: 30_000 });
  assert.equal(ended.result, 'Hello, Ada');
  assert.equal((await platform.taskCounts())?.[0]?.states.completed, 1);
});

test('a type exists once it is in the file, and a handler without an entry has the defaults', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-types-'));
  try {
    const file = join(folder, 'tasks.yaml');
    await writeFile(file, 'task_types:\n  email-send:\n    workers: 4\n');
    await using platform = await createPlatform({
      engines: { store: 'memory:' },
      taskTypesFile: file,
      modules: [defineModule({ name: 'house', tasks: [task('greet', () => 'hello')] })],
    });
    const tasks = await platform.tasks();
    const names = () => tasks.types().map(({ name }) => name);
    assert.deepEqual(names(), ['email-send', 'millrace-bulk', 'greet']);
    await assert.rejects(tasks.enqueue({ type: 'report-gen', payload: 1 }), (error) =>
      hasCode(error, 'TASK_TYPE_UNKNOWN'),
    );
    await writeFile(file, 'task_types:\n  email-send:\n  report-gen:\n');
    const endMs = performance.now() + 30_000;
    while (!names().includes('report-gen') && performance.now() < endMs) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(names(), ['email-send', 'report-gen', 'millrace-bulk', 'greet']);
    await tasks.enqueue({ type: 'report-gen', payload: 1 });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
