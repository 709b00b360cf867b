// How `millrace start` ends while jobs run.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../../src/testing/assertions.ts';
import { startProduct, type StartedProduct } from '../start-product.ts';

const source = (path: string): string => new URL(`../../src/${path}`, import.meta.url).href;

/** The first step ends when the file `go` exists; each run of a step writes a line. */
const config = `
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineConfig, defineModule } from '${source('platform/index.ts')}';
import { task, taskType } from '${source('tasks/index.ts')}';

const note = (text) => appendFileSync('steps.log', text + '\\n');
const slow = task('report-gen', async (ctx) => {
  await ctx.step('load', async () => {
    note('begin load ' + ctx.taskId);
    while (!existsSync('go')) await sleep(20);
    note('load ' + ctx.taskId);
  });
  await ctx.step('render', async () => note('render ' + ctx.taskId));
  return 'done';
});
export default defineConfig({
  modules: [defineModule({ name: 'reports', tasks: [slow] })],
  taskTypes: [taskType('report-gen', { workers: 2 })],
});
`;

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-drain-'));
});
after(() => rm(folder, { recursive: true, force: true }));

async function startIn(cwd: string, ...more: readonly string[]): Promise<StartedProduct> {
  return startProduct(cwd, ['start', '--no-kurrent', ...more]);
}

async function newFolder(): Promise<string> {
  const cwd = await mkdtemp(join(folder, 'run-'));
  await writeFile(join(cwd, 'millrace.config.ts'), config);
  return cwd;
}

async function ask<T>(product: StartedProduct, path: string, body?: unknown): Promise<T> {
  const response = await fetch(product.base + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${product.token ?? ''}`,
      'content-type': 'application/json',
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return (await response.json()) as T;
}

interface Page {
  readonly items: readonly { readonly id: string; readonly state: string }[];
}

async function stepsOf(cwd: string): Promise<readonly string[]> {
  const text = await readFile(join(cwd, 'steps.log'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

async function enqueueFive(product: StartedProduct, cwd: string): Promise<readonly string[]> {
  const tasks = Array.from({ length: 5 }, (_, n) => ({ type: 'report-gen', payload: { n } }));
  const { items } = await ask<{ items: readonly { readonly id: string }[] }>(
    product,
    '/api/v1/jobs/bulk',
    { tasks },
  );
  await eventually('two jobs run', async () => (await stepsOf(cwd)).length === 2);
  return items.map(({ id }) => id);
}

const ofStep = (lines: readonly string[], step: string): readonly string[] =>
  lines.filter((line) => line.startsWith(`${step} `)).toSorted();

test('a stopping process finishes its running jobs and leaves the others to the next process', async () => {
  const cwd = await newFolder();
  const first = await startIn(cwd);
  const { token } = first;
  const ids = await enqueueFive(first, cwd);
  first.signal('SIGTERM');
  await first.whenPrinted('Stopping');
  await writeFile(join(cwd, 'go'), '');
  assert.deepEqual(await first.ended, { code: 0, signal: null });
  const between = await stepsOf(cwd);
  assert.equal(ofStep(between, 'begin').length, 2, 'another job was started');
  assert.equal(ofStep(between, 'render').length, 2, 'a running job was not finished');

  const second = await startIn(cwd);
  await eventually('all jobs are completed', async () => {
    const page = await ask<Page>({ ...second, token }, '/api/v1/jobs?state=completed');
    return page.items.length === 5;
  });
  const lines = await stepsOf(cwd);
  for (const step of ['load', 'render']) {
    assert.deepEqual(ofStep(lines, step), ids.map((id) => `${step} ${id}`).toSorted());
  }
  assert.equal(await second.stop('SIGTERM'), 0);
});

test('a step that does not end in time is released, and another process runs it', async () => {
  const cwd = await newFolder();
  const first = await startIn(cwd, '--shutdown-timeout', '2s');
  const { token } = first;
  const ids = await enqueueFive(first, cwd);
  first.signal('SIGTERM');
  assert.deepEqual(await first.ended, { code: 0, signal: null });
  assert.equal(ofStep(await stepsOf(cwd), 'load').length, 0);

  await writeFile(join(cwd, 'go'), '');
  const second = await startIn(cwd);
  const own = { ...second, token };
  await eventually('all jobs are completed', async () => {
    const page = await ask<Page>(own, '/api/v1/jobs?state=completed');
    return page.items.length === 5;
  });
  const lines = await stepsOf(cwd);
  // Each job continues at its unfinished step and completes once.
  for (const step of ['load', 'render']) {
    assert.deepEqual(ofStep(lines, step), ids.map((id) => `${step} ${id}`).toSorted());
  }
  const failed = await ask<Page>(own, '/api/v1/jobs?state=failed&state=cancelled');
  assert.equal(failed.items.length, 0);
  assert.equal(await second.stop('SIGTERM'), 0);
});
