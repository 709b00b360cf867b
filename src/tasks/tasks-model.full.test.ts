// The real workers, sweeper and rules over an engine in memory. Processes die at any of their calls, or are suspended
// until others consider them dead. In every run, no completed step runs again, a job ends once, and no old fence ends it.

import { openMemory } from '../engines/memory/index.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '../foundation/clock.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { soakMinutes } from '../testing/property-runs.ts';
import { seededRandom, type SeededRandom } from '../testing/seeded-random.ts';
import { createTasks } from './create-tasks.ts';
import { startWorkers } from './run/start-workers.ts';
import { task, type TaskContext } from './task-definition.ts';
import type { TaskChange, TaskEngine } from './task-engine.ts';
import { isTerminal } from './task-job.ts';
import { createTaskSweep } from './run/task-sweeper.ts';
import { taskType } from './task-type.ts';

type Bug = 'none' | 'no-fence' | 'step-not-stored' | 'sweeper-takes-live';

interface History {
  /** `<job> <step>` for each step whose result was acknowledged. */
  readonly finished: Set<string>;
  readonly violations: string[];
  readonly ends: Map<string, number>;
}

const jobs = 6;
const leaseMs = 1_000;
const types = [
  taskType('flow', {
    workers: 3,
    retries: 1_000,
    backoff: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 },
    stepTimeoutMs: 5_000,
  }),
  taskType('child', {
    workers: 3,
    retries: 1_000,
    backoff: { initialMs: 10, factor: 1, capMs: 10, jitterMs: 0 },
  }),
];

const dead = (): Promise<never> => new Promise(() => undefined);

/** The engine from the view of a process: after some call it never responds, before or after the call took effect. */
function mortal(
  engine: TaskEngine,
  random: SeededRandom,
  history: History,
  clock: Clock,
  bug: Bug,
): { readonly engine: TaskEngine; isDead(): boolean; heal(): void } {
  let isDead = false;
  let isHealed = false;
  const callsLeft = 3 + random.below(60);
  let calls = 0;
  let stillUntilMs = 0;

  /** Suspended for longer than its lease: its pending calls arrive late. */
  async function standStill(): Promise<void> {
    const isBegun = clock.now() < stillUntilMs;
    if (!isBegun && !isHealed && random.below(60) === 0) {
      stillUntilMs = clock.now() + random.below(3 * leaseMs);
    }
    while (clock.now() < stillUntilMs) await clock.sleep(stillUntilMs - clock.now());
  }

  const guarded =
    <A extends readonly unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (isDead) return dead();
      calls += 1;
      await standStill();
      const dies = !isHealed && calls >= callsLeft;
      if (dies && random.below(2) === 0) {
        isDead = true;
        return dead();
      }
      const result = await call(...args);
      if (dies) isDead = true;
      return isDead ? dead() : result;
    };

  function spoilt(change: TaskChange): TaskChange {
    if (bug === 'no-fence') return { ...change, guard: {} };
    if (bug === 'step-not-stored') {
      const fields = Object.entries(change.fields).filter(([name]) => !name.startsWith('step:'));
      return { ...change, fields: Object.fromEntries(fields) };
    }
    return change;
  }

  const wrapped: TaskEngine = {
    ...engine,
    enqueue: guarded((...args: Parameters<TaskEngine['enqueue']>) => engine.enqueue(...args)),
    claim: guarded((...args: Parameters<TaskEngine['claim']>) => engine.claim(...args)),
    get: guarded((...args: Parameters<TaskEngine['get']>) => engine.get(...args)),
    heads: guarded((...args: Parameters<TaskEngine['heads']>) => engine.heads(...args)),
    list: guarded((...args: Parameters<TaskEngine['list']>) => engine.list(...args)),
    beat: guarded((...args: Parameters<TaskEngine['beat']>) => engine.beat(...args)),
    overdue: guarded(async (request) =>
      bug === 'sweeper-takes-live'
        ? engine.overdue({ ...request, nowMs: request.nowMs + 60_000 })
        : engine.overdue(request),
    ),
    repair: guarded((...args: Parameters<TaskEngine['repair']>) => engine.repair(...args)),
    changeAndClaim: guarded(async (changes, claim, nowMs) => {
      const before = await engine.heads(changes);
      const result = await engine.changeAndClaim(changes.map(spoilt), claim, nowMs);
      for (const [at, change] of changes.entries()) {
        const head = before[at];
        if (result.outcomes[at]?.kind !== 'done' || head === undefined) continue;
        const isEnd = change.head.state !== undefined && isTerminal(change.head.state);
        if (isEnd) {
          const ends = (history.ends.get(change.id) ?? 0) + 1;
          history.ends.set(change.id, ends);
          if (ends > 1) history.violations.push(`${change.id} ended ${ends} times`);
        }
        // Asserted here, because a receiver that removes duplicates would hide it.
        const { fence } = change.guard;
        const isLate = fence !== undefined && (head.state !== 'running' || head.fence !== fence);
        if (isLate) history.violations.push(`${change.id} was changed under an old fence`);
      }
      return result;
    }),
    async [Symbol.asyncDispose]() {
      isDead = true;
    },
  };
  return {
    engine: wrapped,
    isDead: () => isDead,
    heal() {
      isHealed = true;
    },
  };
}

async function simulate(seed: number, bug: Bug): Promise<readonly string[]> {
  const random = seededRandom(seed);
  const clock = fakeClock({ nowMs: 1_000_000 });
  await using db = openMemory({ clock });
  const engine = db.tasks;
  const history: History = { finished: new Set(), violations: [], ends: new Map() };

  const child = task('child', async (ctx) => {
    await ctx.step('only', () => ran(ctx, 'only'));
    done(ctx.taskId, 'only');
    return 1;
  });
  const flow = task('flow', async (ctx) => {
    for (const name of ['a', 'b']) {
      await ctx.step(name, () => ran(ctx, name));
      done(ctx.taskId, name);
    }
    await ctx.sleep(50);
    await ctx.all([{ type: 'child', payload: null }]);
    await ctx.step('c', () => ran(ctx, 'c'));
    done(ctx.taskId, 'c');
    return 'done';
  });
  async function ran({ taskId: id, type, attempt }: TaskContext, step: string): Promise<void> {
    if (!history.finished.has(`${id} ${step}`)) return;
    // A worker whose job was taken during its lease cannot know it before its next call: only its stale run may
    // repeat a step. Each job that is taken counts as a failure, so the attempt identifies a stale run.
    const [head] = await engine.heads([{ id, type }]);
    const isStale = head !== undefined && attempt <= head.failures;
    if (bug === 'sweeper-takes-live' && isStale) return;
    history.violations.push(`${id} ran ${step} again`);
  }
  function done(id: string, step: string): void {
    history.finished.add(`${id} ${step}`);
  }

  function start() {
    const process = mortal(engine, random, history, clock, bug);
    const tasks = createTasks(process.engine, { clock, types });
    const workers = startWorkers(tasks, [flow, child], {
      leaseMs,
      drainMs: 1,
      beatsFromThread: false,
    });
    const sweep = createTaskSweep(tasks);
    return { process, workers, sweep };
  }

  const outside = createTasks(engine, { clock, types });
  const ids = await outside.enqueueMany(
    Array.from({ length: jobs }, (_, n) => ({ type: 'flow', payload: n, key: `job-${n}` })),
  );
  let processes = [start(), start()];
  const isOver = async (): Promise<boolean> => {
    const heads = await engine.heads(ids.map(({ id }) => ({ id, type: 'flow' })));
    return heads.every((head) => head !== undefined && isTerminal(head.state));
  };
  for (let round = 0; !(await isOver()); round += 1) {
    if (round > 3_000) return [...history.violations, 'the jobs did not end'];
    // After this round there are no further faults, so all jobs must end.
    if (round === 300) for (const { process } of processes) process.heal();
    if (history.violations.length > 0) break;
    for (const { sweep, process } of processes) {
      if (!process.isDead() && random.below(4) === 0) sweep.sweep().catch(() => undefined);
    }
    await clock.advance(random.below(8) === 0 ? 400 : 20);
    await new Promise(setImmediate);
    processes = processes.map((each) => {
      if (!each.process.isDead()) return each;
      const next = start();
      if (round >= 300) next.process.heal();
      return next;
    });
  }
  for (const { id } of ids) {
    const terminal = await Array.fromAsync(db.bus.read('gbe.tasks.flow.terminal'));
    const ends = terminal.filter(({ payload }) => Object(payload).taskId === id).length;
    if (history.violations.length === 0 && ends !== 1) {
      history.violations.push(`${id} published its end ${ends} times`);
    }
  }
  for (const { process } of processes) await process.engine[Symbol.asyncDispose]();
  return history.violations;
}

const seeds = soakMinutes > 0 ? 600 : 12;

test(`${seeds} runs with processes killed at any call: no completed step runs again, a job ends once, no old fence is accepted`, async () => {
  for (let seed = 0; seed < seeds; seed += 1) {
    assert.deepEqual(await simulate(seed, 'none'), [], `seed ${seed}`);
  }
});

for (const bug of ['no-fence', 'step-not-stored'] as const) {
  test(`the checker detects the seeded bug: ${bug}`, async () => {
    for (let seed = 0; seed < 100; seed += 1) {
      if ((await simulate(seed, bug)).length > 0) return;
    }
    assert.fail('no seed found it');
  });
}

test('after a sweeper takes jobs from live workers, the new run repeats no completed step', async () => {
  for (let seed = 0; seed < (soakMinutes > 0 ? 100 : 4); seed += 1) {
    const violations = await simulate(seed, 'sweeper-takes-live');
    assert.deepEqual(
      violations.filter((each) => each !== 'the jobs did not end'),
      [],
      `seed ${seed}`,
    );
  }
});
