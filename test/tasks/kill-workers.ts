// Kills worker processes at random while jobs are enqueued, and checks the history afterwards.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/foundation/clock.ts';
import { hasCode } from '../../src/foundation/error.ts';
import { openRole } from '../../src/platform/engines/open-engines.ts';
import { isTerminal } from '../../src/tasks/task-job.ts';
import { createTasks, type Tasks } from '../../src/tasks/index.ts';
import { startChild, type Child } from '../../src/testing/child-process.ts';
import { seededRandom } from '../../src/testing/seeded-random.ts';
import { soakMinutes } from '../store/rig.ts';
import { rigSteps, rigType } from './rig-type.ts';
import { checkTaskHistory, type TaskOutcome, type WorkerNote } from './task-history.ts';
import type { TaskWorkerInput } from './worker-main.ts';

export interface TaskPlan {
  readonly url: string;
  readonly seed: number;
  readonly workers: number;
  readonly jobs: number;
  readonly leaseMs: number;
  readonly faultsMs: number;
  readonly faultEveryMs: number;
  /** Faults continue for `faultsMs` and until all jobs are enqueued, within these limits. */
  readonly faultsMin: number;
  readonly faultsMax: number;
  /** The duration of a step; 0 means one turn of the event loop. */
  readonly stepMs: number;
  /** Off in short runs, because the thread doubles the start time; `busy-cases.ts` tests it. */
  readonly beatsFromThread: boolean;
  /** Whether a worker can be killed before it has started. */
  readonly killsStarting: boolean;
  /** An additional fault, at the second fault and at every third one on average. */
  readonly alsoFault?: (() => Promise<void>) | undefined;
}

/** Short in `npm test`; one minute and 5k jobs in a soak. */
export function taskPlanOf(run: Pick<TaskPlan, 'alsoFault' | 'seed' | 'url'>): TaskPlan {
  return soakMinutes > 0
    ? {
        ...run,
        workers: 4,
        leaseMs: 1_000,
        jobs: 5_000,
        faultsMs: 60_000,
        faultEveryMs: 1_000,
        faultsMin: 3,
        faultsMax: Infinity,
        stepMs: 0,
        beatsFromThread: true,
        killsStarting: true,
      }
    : {
        ...run,
        workers: 2,
        leaseMs: 500,
        jobs: 100,
        faultsMs: 2_000,
        faultEveryMs: 200,
        // The second fault also kills the server.
        faultsMin: 2,
        faultsMax: 2,
        // There are few kills, so each must hit a worker with running jobs.
        stepMs: 30,
        beatsFromThread: false,
        killsStarting: false,
      };
}

export async function killTaskWorkers(plan: TaskPlan): Promise<void> {
  const random = seededRandom(plan.seed);
  const folder = await mkdtemp(join(tmpdir(), 'millrace-kill-tasks-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const tasks = stack.use(createTasks(await openRole(plan.url, 'tasks'), { types: [rigType] }));
  let generation = 0;
  const start = (): Child => {
    generation += 1;
    const worker = `w${generation}`;
    const input: TaskWorkerInput = {
      url: plan.url,
      worker,
      file: join(folder, `${worker}.ndjson`),
      leaseMs: plan.leaseMs,
      stepMs: plan.stepMs,
      beatsFromThread: plan.beatsFromThread,
    };
    return startChild(new URL('./worker-main.ts', import.meta.url), { input });
  };
  const children = Array.from({ length: plan.workers }, start);
  stack.defer(async () => {
    await Promise.all(children.map((child) => child.kill()));
  });
  await Promise.race(children.map((child) => child.message(isStarted)));
  const enqueued: { readonly key: string; readonly id: string }[] = [];
  let isEnqueued = false;
  const enqueuing = enqueueAll(plan, tasks, enqueued).then(() => (isEnqueued = true));
  const endMs = performance.now() + plan.faultsMs;
  const continues = (faults: number): boolean =>
    faults < plan.faultsMin ||
    (faults < plan.faultsMax && (performance.now() < endMs || !isEnqueued));
  for (let faults = 0; continues(faults); faults += 1) {
    await systemClock.sleep(plan.faultEveryMs * (0.5 + random.next()));
    if (faults === 1 || random.below(3) === 0) await plan.alsoFault?.();
    const slot = random.below(children.length);
    const child = children[slot];
    if (child !== undefined && !plan.killsStarting) await whenStarted(child);
    await child?.kill();
    children[slot] = start();
  }
  await enqueuing;
  const jobs = await whenAllEnded(tasks, plan);
  const terminals = await publishedEnds(plan.url, jobs);
  const files = await readdir(folder);
  const notes = (
    await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
  ).flatMap(notesOf);
  const found = checkTaskHistory({ enqueued, notes, terminals, jobs, steps: rigSteps });
  assert.deepEqual(found.slice(0, 10), [], `seed ${plan.seed}: ${found.length} violations`);
}

/** Enqueues each key twice at about the same time, and again after a call without a reply. */
async function enqueueAll(
  plan: TaskPlan,
  tasks: Tasks,
  enqueued: { readonly key: string; readonly id: string }[],
): Promise<void> {
  const batch = Math.min(50, plan.jobs / 4);
  for (let at = 0; at < plan.jobs; at += batch) {
    const keys = Array.from(
      { length: Math.min(batch, plan.jobs - at) },
      (_, each) => `k${at + each}`,
    );
    const once = async (): Promise<void> => {
      const wanted = keys.map((key) => ({
        type: rigType.name,
        payload: { key },
        key,
        tenant: 'core',
      }));
      // Every other batch is enqueued one by one, because a single job can be handed off to a waiting worker.
      const portions = (at / batch) % 2 === 0 ? [wanted] : wanted.map((job) => [job]);
      for (const portion of portions) {
        const jobs = await retryWhileUnavailable(() => tasks.enqueueMany(portion));
        jobs.forEach(({ id }, each) => enqueued.push({ key: portion[each]?.key ?? '', id }));
      }
    };
    await Promise.all([once(), once()]);
    await systemClock.sleep((plan.faultsMs * 0.6 * batch) / plan.jobs);
  }
}

async function retryWhileUnavailable<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, 'TASKS_UNAVAILABLE')) throw error;
      await systemClock.sleep(100);
    }
  }
}

async function whenAllEnded(tasks: Tasks, plan: TaskPlan): Promise<readonly TaskOutcome[]> {
  const endMs = performance.now() + 180_000;
  for (;;) {
    const jobs: TaskOutcome[] = [];
    let isOver = true;
    for (let cursor: string | undefined; ;) {
      const page = await retryWhileUnavailable(() =>
        tasks.list({ type: rigType.name }, { cursor, limit: 1_000 }),
      );
      for (const { id, key, state } of page.tasks) {
        jobs.push({ id, key, state });
        isOver &&= isTerminal(state);
      }
      if (page.cursor === undefined) break;
      cursor = page.cursor;
    }
    if ((isOver && jobs.length >= plan.jobs) || performance.now() > endMs) return jobs;
    await systemClock.sleep(200);
  }
}

/** Engines that cannot store record and message together publish the terminal signal of a killed worker's job by a sweeper. */
async function publishedEnds(
  url: string,
  jobs: readonly TaskOutcome[],
): Promise<readonly string[]> {
  await using bus = await openRole(url, 'bus');
  for (const endMs = performance.now() + 180_000; ;) {
    const ids: string[] = [];
    for await (const { payload } of bus.read(`gbe.tasks.${rigType.name}.terminal`)) {
      ids.push((payload as { readonly taskId: string }).taskId);
    }
    const published = new Set(ids);
    if (jobs.every(({ id }) => published.has(id)) || performance.now() > endMs) return ids;
    await systemClock.sleep(200);
  }
}

/** A killed process may have left an incomplete last line. */
function notesOf(text: string): readonly WorkerNote[] {
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  const lines = complete.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as WorkerNote);
}

/** Resolves when the worker has started or ended; it ends if it cannot reach its server. */
async function whenStarted(child: Child): Promise<void> {
  await Promise.race([child.message(isStarted).catch(() => undefined), child.ended]);
}

function isStarted(message: unknown): message is { readonly kind: 'started' } {
  return (message as { readonly kind: string }).kind === 'started';
}
