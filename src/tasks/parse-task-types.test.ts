import { openMemory } from '../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { hasCode } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createTasks } from './create-tasks.ts';
import { parseTaskTypes } from './parse-task-types.ts';
import { watchTaskTypes } from './run/watch-task-types.ts';

const document = `
task_types:
  email-send:
    workers: 4
    step_timeout: 30s
  report-gen:
    workers: 2
    step_timeout: 300s
  deploy-pipeline:
    workers: 1
    step_timeout: 600s
`;

test('reads the types of the example in the documentation', () => {
  const types = parseTaskTypes(document);
  assert.deepEqual(
    types.map(({ name, workers, stepTimeoutMs }) => [name, workers, stepTimeoutMs]),
    [
      ['email-send', 4, 30_000],
      ['report-gen', 2, 300_000],
      ['deploy-pipeline', 1, 600_000],
    ],
  );
});

test('reads every setting of a type', () => {
  const [type] = parseTaskTypes(`
task_types:
  full:
    retries: 5
    backoff: { initial: 2s, factor: 3, cap: 5m, jitter: 100ms }
    priority: 8
    rate_limit: { count: 100, per: 1m, by: tenant }
    concurrency_key: customer.id
    concurrency_limit: 2
    retention: 7d
    dedupe_window: 10m
    on_lost: fail
    cancel_deadline: 5s
    cron: { schedule: '30 7 * * mon-fri', time_zone: Europe/Berlin, payload: { kind: daily } }
`);
  assert.deepEqual(type, {
    name: 'full',
    workers: 1,
    stepTimeoutMs: 60_000,
    retries: 5,
    backoff: { initialMs: 2_000, factor: 3, capMs: 300_000, jitterMs: 100 },
    priority: 8,
    rate: { count: 100, perMs: 60_000, isPerTenant: true },
    concurrencyKey: 'customer.id',
    concurrencyLimit: 2,
    retentionMs: 7 * 86_400_000,
    dedupeWindowMs: 600_000,
    onLost: 'fail',
    cancelDeadlineMs: 5_000,
    cron: {
      expression: '30 7 * * mon-fri',
      timeZone: 'Europe/Berlin',
      payload: { kind: 'daily' },
      tenant: undefined,
    },
  });
});

test('an entry without settings, and short forms, are enough', () => {
  const [plain, short] = parseTaskTypes(
    'task_types:\n  plain:\n  short:\n    rate_limit: 10/1s\n    backoff: 5s\n    cron: "0 3 * * *"\n',
  );
  assert.equal(plain?.workers, 1);
  assert.deepEqual(short?.rate, { count: 10, perMs: 1_000, isPerTenant: false });
  assert.equal(short.backoff.initialMs, 5_000);
  assert.equal(short.cron?.timeZone, 'UTC');
});

for (const [what, text, line, field] of [
  ['an unknown setting', 'task_types:\n  a:\n    wokers: 4\n', 3, 'task_types.a.wokers'],
  [
    'a number without a unit',
    'task_types:\n  a:\n    step_timeout: 30\n',
    3,
    'task_types.a.step_timeout',
  ],
  [
    'a deadline without a unit',
    'task_types:\n  a:\n    cancel_deadline: 30\n',
    3,
    'task_types.a.cancel_deadline',
  ],
  [
    'a name that is not a valid type name',
    'task_types:\n  Email Send:\n    workers: 1\n',
    2,
    'task_types.Email Send',
  ],
  ['a bad cron', 'task_types:\n  a:\n\n    cron: "61 * * * *"\n', 4, 'task_types.a.cron'],
  [
    'a bad time zone',
    'task_types:\n  a:\n    cron: { schedule: "* * * * *", time_zone: Mars }\n',
    3,
    'task_types.a.cron',
  ],
  ['too many workers', 'task_types:\n  a:\n    workers: 100000\n', 3, 'task_types.a.workers'],
  ['a list instead of a map', 'task_types:\n  - a\n', 2, 'task_types'],
  ['the same type twice', 'task_types:\n  a:\n  a:\n', 2, undefined],
  ['no YAML', 'task_types: [unclosed\n', 2, undefined],
] as const) {
  test(`${what} is reported with its line`, () => {
    assert.throws(
      () => parseTaskTypes(text),
      (error) => {
        assert.ok(hasCode(error, 'TASK_TYPES_INVALID'), String(error));
        assert.equal(error.details['field'], field);
        if (what !== 'a list instead of a map') assert.equal(error.details['line'], line);
        return true;
      },
    );
  });
}

test('reloads a changed file; logs an invalid one, and keeps the previous types', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-types-'));
  const path = join(folder, 'tasks.yaml');
  const lines: string[] = [];
  const collect = (_fields: object, message: string): void => void lines.push(message);
  const clock = fakeClock();
  const log = { debug: collect, info: collect, warn: collect, error: collect };
  await using tasks = createTasks(openMemory({ clock }).tasks, { clock, observer: { log } });
  await writeFile(path, document);
  const names = (): string[] => tasks.types().map(({ name }) => name);
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) {
      await clock.advance(1_000);
      await new Promise(setImmediate);
    }
  };
  {
    await using watch = watchTaskTypes(tasks, path, { everyMs: 1_000 });
    await until(() => names().includes('email-send'));
    await writeFile(path, `${document}  invoice-print:\n    workers: 1\n`);
    await until(() => names().includes('invoice-print'));
    assert.ok(lines.includes('task types reloaded'));
    await writeFile(path, 'task_types: nothing');
    await until(() => lines.includes('task types not reloaded'));
    assert.ok(names().includes('invoice-print'));
    assert.ok(watch);
  }
  await rm(folder, { recursive: true });
});
