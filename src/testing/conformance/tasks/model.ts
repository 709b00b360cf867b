// Random work on an engine and on a simple model: both must agree after every step, and calls with an old fence token
// must change nothing.

import assert from 'node:assert/strict';
import { hasCode } from '../../../foundation/error.ts';
import { seededRandom, type SeededRandom } from '../../seeded-random.ts';
import { deadlineGraceMs } from '../../../tasks/rules/task-decision.ts';
import { isTerminal, type TaskState } from '../../../tasks/task-job.ts';
import { createTaskSweep } from '../../../tasks/run/task-sweeper.ts';
import { claimSome, email, fieldOf, type TasksCaseContext, type TasksCases } from './fixture.ts';
import type { Tasks, TaskToken } from '../../../tasks/tasks.ts';

/** The settings of `email-send` in the suite. */
const retries = 2;
const stepTimeoutMs = 30_000;
const firstBackoffMs = 1_000;
const cancelDeadlineMs = 30_000;
const leaseMs = 20_000;

/** The expected state of one job. */
interface ModelJob {
  readonly id: string;
  readonly priority: number;
  state: TaskState;
  dueAtMs: number;
  fence: number;
  failures: number;
  worker: string;
  deadlineMs: number;
  cancelAtMs: number;
  readonly steps: Set<string>;
  terminalCount: number;
}

interface Model {
  readonly jobs: ModelJob[];
  readonly byKey: Map<string, ModelJob>;
  readonly aliveUntilMs: Map<string, number>;
  /** All issued tokens, most of them outdated. */
  readonly tokens: TaskToken[];
}

function enterTerminal(job: ModelJob, state: TaskState): void {
  Object.assign(job, { state, cancelAtMs: 0, dueAtMs: Infinity });
  job.terminalCount += 1;
}

function failed(job: ModelJob, how: { readonly isTerminal: boolean; readonly dueAtMs: number }) {
  job.failures += 1;
  if (how.isTerminal || job.failures > retries) return enterTerminal(job, 'failed');
  return Object.assign(job, { state: 'waiting', dueAtMs: how.dueAtMs });
}

const isDue = (job: ModelJob, nowMs: number): boolean =>
  job.state !== 'running' && !isTerminal(job.state) && job.dueAtMs <= nowMs;

function sweepModel(model: Model, nowMs: number): void {
  for (const job of model.jobs) {
    if (job.state === 'scheduled' && job.dueAtMs <= nowMs) job.state = 'queued';
    if (job.state !== 'running') continue;
    const isAlive = (model.aliveUntilMs.get(job.worker) ?? 0) > nowMs;
    if (job.cancelAtMs > 0 && job.cancelAtMs <= nowMs) enterTerminal(job, 'cancelled');
    else if (job.deadlineMs <= nowMs || !isAlive) {
      failed(job, { isTerminal: false, dueAtMs: nowMs });
    }
  }
}

type Act = (run: Run) => Promise<void>;

interface Run {
  readonly tasks: Tasks;
  readonly model: Model;
  readonly random: SeededRandom;
  readonly context: TasksCaseContext;
  readonly sweep: () => Promise<unknown>;
}

async function enqueue({ tasks, model, random, context }: Run): Promise<void> {
  const nowMs = context.clock.now();
  const key = random.below(2) === 0 ? `key-${random.below(4)}` : undefined;
  const delayMs = random.pick([0, 0, 1_000, 30_000]);
  const priority = random.below(10);
  const tenant = [undefined, 'a', 'b'][random.below(3)];
  const { id, isDuplicate } = await tasks.enqueue({
    type: email,
    payload: { n: model.jobs.length },
    key,
    delayMs,
    priority,
    tenant,
  });
  const dedupeKey = key === undefined ? undefined : `${tenant ?? ''}/${key}`;
  const first = dedupeKey === undefined ? undefined : model.byKey.get(dedupeKey);
  assert.deepEqual([isDuplicate, first?.id ?? id], [first !== undefined, id], 'one job of a key');
  if (first !== undefined) return;
  const job: ModelJob = {
    id,
    priority,
    state: delayMs === 0 ? 'queued' : 'scheduled',
    dueAtMs: nowMs + delayMs,
    fence: 0,
    failures: 0,
    worker: '',
    deadlineMs: Infinity,
    cancelAtMs: 0,
    steps: new Set(),
    terminalCount: 0,
  };
  model.jobs.push(job);
  if (dedupeKey !== undefined) model.byKey.set(dedupeKey, job);
}

async function claim({ tasks, model, random, context }: Run): Promise<void> {
  const nowMs = context.clock.now();
  const limit = 1 + random.below(3);
  const worker = `worker-${random.below(3)}`;
  const due = model.jobs.filter((job) => isDue(job, nowMs));
  const claimed = await claimSome(tasks, limit, { worker, leaseMs });
  model.aliveUntilMs.set(worker, nowMs + leaseMs);
  assert.equal(claimed.length, Math.min(limit, due.length), 'as many as are due');
  const jobs = claimed.map(({ token }) => due.find(({ id }) => id === token.id));
  if (context.capabilities.exactOrder) {
    const highest = due.map(({ priority }) => priority).toSorted((a, b) => b - a);
    const got = jobs.map((job) => job?.priority ?? -1).toSorted((a, b) => b - a);
    assert.deepEqual(got, highest.slice(0, limit), 'the highest priorities');
  }
  for (const [at, { token }] of claimed.entries()) {
    const job = jobs[at] ?? assert.fail(`${token.id} was not due`);
    const deadlineMs = nowMs + stepTimeoutMs + deadlineGraceMs;
    Object.assign(job, { state: 'running', worker, deadlineMs, fence: job.fence + 1 });
    assert.equal(token.fence, job.fence, 'the next fence');
    model.tokens.push(token);
  }
}

/** Uses any issued token: the call counts only with the latest one of a running job. */
function withToken(
  call: (tasks: Tasks, token: TaskToken, run: Run) => Promise<unknown>,
  expectChange: (job: ModelJob, nowMs: number, run: Run) => unknown,
): Act {
  return async (run) => {
    const { tasks, model, random, context } = run;
    if (model.tokens.length === 0) return;
    // Most calls use a recent token.
    const among = random.below(4) === 0 ? model.tokens : model.tokens.slice(-4);
    const token = random.pick(among);
    const job =
      model.jobs.find(({ id }) => id === token.id) ?? assert.fail(`unknown job '${token.id}'`);
    const isCurrent = job.state === 'running' && job.fence === token.fence;
    let isAccepted = true;
    try {
      await call(tasks, token, run);
    } catch (error) {
      if (!hasCode(error, 'TASK_STALE')) throw error;
      isAccepted = false;
    }
    assert.equal(isAccepted, isCurrent, `${token.id} under fence ${token.fence}`);
    if (isCurrent) expectChange(job, context.clock.now(), run);
  };
}

/** Admin actions on jobs in any state. */
function administered(
  call: (tasks: Tasks, id: string) => Promise<boolean>,
  expectChange: (job: ModelJob, nowMs: number) => boolean,
): Act {
  return async ({ tasks, model, random, context }) => {
    if (model.jobs.length === 0) return;
    const job = random.pick(model.jobs);
    const isChanged = await call(tasks, job.id);
    assert.equal(isChanged, expectChange(job, context.clock.now()), `${job.id} in ${job.state}`);
  };
}

function cancelModel(job: ModelJob, nowMs: number): boolean {
  if (isTerminal(job.state)) return false;
  if (job.state !== 'running') {
    enterTerminal(job, 'cancelled');
    return true;
  }
  if (job.cancelAtMs > 0) return false;
  job.cancelAtMs = nowMs + cancelDeadlineMs;
  return true;
}

function retryModel(job: ModelJob, nowMs: number): boolean {
  if (!isTerminal(job.state)) return false;
  Object.assign(job, { state: 'queued', dueAtMs: nowMs, fence: job.fence + 1, failures: 0 });
  return true;
}

const acts: Readonly<Record<string, { readonly weight: number; readonly act: Act }>> = {
  enqueue: { weight: 5, act: enqueue },
  claim: { weight: 6, act: claim },
  step: {
    weight: 4,
    act: withToken(
      (tasks, token) => tasks.finishStep(token, { name: `step-${token.fence % 3}`, result: 1 }),
      (job, nowMs) => {
        job.steps.add(`step-${job.fence % 3}`);
        job.deadlineMs = nowMs + stepTimeoutMs + deadlineGraceMs;
      },
    ),
  },
  complete: {
    weight: 3,
    act: withToken(
      (tasks, token) => tasks.complete(token, 'done'),
      (job) => enterTerminal(job, 'completed'),
    ),
  },
  fail: {
    weight: 2,
    act: withToken(
      (tasks, token) => tasks.fail(token, { message: 'no' }),
      (job, nowMs) =>
        failed(job, { isTerminal: false, dueAtMs: nowMs + firstBackoffMs * 2 ** job.failures }),
    ),
  },
  failForGood: {
    weight: 1,
    act: withToken(
      (tasks, token) => tasks.fail(token, { message: 'never', isTerminal: true }),
      (job) => failed(job, { isTerminal: true, dueAtMs: 0 }),
    ),
  },
  release: {
    weight: 1,
    act: withToken(
      (tasks, token) => tasks.release(token),
      (job, nowMs) => Object.assign(job, { state: 'queued', dueAtMs: nowMs }),
    ),
  },
  sleep: {
    weight: 1,
    act: withToken(
      (tasks, token, { context }) =>
        tasks.sleep(token, {
          name: `nap-${token.fence}`,
          until: new Date(context.clock.now() + 10_000),
        }),
      (job, nowMs) => {
        Object.assign(job, { state: 'waiting', dueAtMs: nowMs + 10_000 });
        job.steps.add(`nap-${job.fence}`);
      },
    ),
  },
  cancel: { weight: 1, act: administered((tasks, id) => tasks.cancel(id), cancelModel) },
  retry: { weight: 1, act: administered((tasks, id) => tasks.retry(id), retryModel) },
  beat: {
    weight: 2,
    async act({ tasks, model, random, context }) {
      const worker = `worker-${random.below(3)}`;
      await tasks.heartbeat({ worker, leaseMs });
      model.aliveUntilMs.set(worker, context.clock.now() + leaseMs);
    },
  },
  sweep: {
    weight: 2,
    async act({ model, context, sweep }) {
      await sweep();
      sweepModel(model, context.clock.now());
    },
  },
  wait: {
    weight: 4,
    act: ({ random, context }) => context.clock.advance(random.pick([1, 1_000, 5_000, 25_000])),
  },
};
const names = Object.entries(acts).flatMap(([name, { weight }]) =>
  Array.from({ length: weight }, () => name),
);

async function compare({ tasks, model }: Run): Promise<void> {
  const found = await Promise.all(model.jobs.map(({ id }) => tasks.get(id)));
  const sorted = (steps: Iterable<string>): readonly string[] => [...steps].toSorted();
  assert.deepEqual(
    found.map((task) => ({
      id: task?.id,
      state: task?.state,
      failures: task?.failures,
      steps: sorted((task?.steps ?? []).map(({ name }) => name)),
    })),
    model.jobs.map(({ id, state, failures, steps }) => ({
      id,
      state,
      failures,
      steps: sorted(steps),
    })),
  );
}

/** Without further failures, each job reaches a terminal state and publishes one signal per terminal state. */
async function drain(run: Run): Promise<void> {
  const { tasks, model, context, sweep } = run;
  for (let round = 0; model.jobs.some(({ state }) => !isTerminal(state)); round += 1) {
    assert.ok(round < 50, 'jobs remain after 50 rounds');
    await context.clock.advance(60_000);
    await sweep();
    sweepModel(model, context.clock.now());
    for (const { token } of await claimSome(tasks, 100)) {
      await tasks.complete(token);
      const job =
        model.jobs.find(({ id }) => id === token.id) ?? assert.fail(`unknown job '${token.id}'`);
      job.fence = token.fence;
      enterTerminal(job, 'completed');
    }
  }
  await compare(run);
  const terminal = await context.opened.stream(`gbe.tasks.${email}.terminal`);
  for (const { id, terminalCount } of model.jobs) {
    const count = terminal.filter(({ payload }) => fieldOf(payload, 'taskId') === id).length;
    assert.equal(count, terminalCount, `terminal signals of ${id}`);
  }
}

async function compareWithModel(
  tasks: Tasks,
  context: TasksCaseContext,
  seed: number,
): Promise<void> {
  const random = seededRandom(seed);
  const model: Model = { jobs: [], byKey: new Map(), aliveUntilMs: new Map(), tokens: [] };
  const { sweep } = createTaskSweep(tasks);
  const run: Run = { tasks, model, random, context, sweep };
  const done: string[] = [];
  try {
    for (let step = 0; step < 120; step += 1) {
      const name = random.pick(names);
      done.push(name);
      await acts[name]?.act(run);
      await compare(run);
    }
    await drain(run);
  } catch (cause) {
    throw new Error(`seed ${seed}, after ${done.join(' ')}`, { cause });
  }
}

export const modelCases: TasksCases = Object.fromEntries(
  [1, 2, 3, 4, 5, 6].map((seed) => [
    `random work has the same results as the model (seed ${seed})`,
    (tasks, context) => compareWithModel(tasks, context, seed),
  ]),
);
