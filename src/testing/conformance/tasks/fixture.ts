// The fixture of the suite, and helpers of its cases.

import assert from 'node:assert/strict';
import { systemClock } from '../../../foundation/clock.ts';
import { fakeClock, type FakeClock } from '../../fake-clock.ts';
import type { TasksOptions } from '../../../tasks/create-tasks.ts';
import type { TaskCapabilities } from '../../../tasks/task-engine.ts';
import { taskType, type TaskType } from '../../../tasks/task-type.ts';
import type { ClaimedTask, ClaimOptions, NewTask, Tasks } from '../../../tasks/tasks.ts';

/** Isolated tasks; disposed by the suite. */
export interface OpenedTasks {
  readonly tasks: Tasks;
  /** Opens the same jobs again, as another process does (`crossProcess`). The case disposes the second instance. */
  second?(options: TasksOptions): Promise<Tasks>;
  /** The messages in the stream of a subject, oldest first. */
  stream(subject: string): Promise<readonly { readonly id: string; readonly payload: unknown }[]>;
  /** Deletes a stream, regardless of acknowledgements. */
  deleteStream(subject: string): Promise<void>;
  /** Stops the engine until the result is called; its data survives (`restart`). */
  outage?(): Promise<() => Promise<void>>;
  /** Replaces a part of a stored job by text that is not valid, without the engine. */
  damage?(id: string, part: DamagedPart): Promise<void>;
  close?(): Promise<void>;
}

/** `head`: what the engine itself reads, such as the labels. */
export type DamagedPart = 'head' | 'payload' | 'run';

/** Abilities of the fixture, in addition to the capabilities of the adapter. */
export interface TasksFixtureCapabilities extends TaskCapabilities {
  /** The fixture can stop and restart the engine. */
  readonly restart: boolean;
}

export interface TasksFixture {
  /** The capabilities of the adapter; cases that need others are skipped. */
  readonly capabilities: TasksFixtureCapabilities;
  /** Returns an empty instance each time, with the given clock and types. */
  open(options: TasksOptions): Promise<OpenedTasks>;
}

export interface TasksCase {
  /** The title of the case: the topic, then a sentence. */
  readonly name: string;
  /** Why the case is skipped: `needs exactOrder`. */
  readonly skip?: string | undefined;
  /** Rejects if the adapter fails the case. */
  readonly run: () => Promise<void>;
}

export interface TasksCaseContext {
  readonly opened: OpenedTasks;
  readonly clock: FakeClock;
  readonly capabilities: TasksFixtureCapabilities;
}

export type TasksCases = Readonly<
  Record<string, (tasks: Tasks, context: TasksCaseContext) => Promise<void>>
>;

/** A backoff without jitter, so that times are exact. */
const backoff = { initialMs: 1_000, factor: 2, capMs: 60_000, jitterMs: 0 };

export const email = 'email-send';
export const report = 'report-gen';
export const caseTypes: readonly TaskType[] = [
  taskType(email, { workers: 4, stepTimeoutMs: 30_000, retries: 2, backoff }),
  taskType(report, { workers: 2, stepTimeoutMs: 300_000, retries: 0, backoff }),
  taskType('limited', { rate: { count: 3, perMs: 60_000, isPerTenant: false }, backoff }),
  taskType('limited-each', { rate: { count: 2, perMs: 60_000, isPerTenant: true }, backoff }),
  taskType('keyed', { concurrencyKey: 'account', concurrencyLimit: 1, backoff }),
  taskType('per-tenant', { concurrencyKey: 'tenant', concurrencyLimit: 2, backoff }),
  taskType('windowed', { dedupeWindowMs: 60_000, backoff }),
  taskType('brittle', { onLost: 'fail', backoff }),
];

const worker = 'worker-1';
/** Longer than any case runs. */
export const longLeaseMs = 86_400_000;

export async function claimSome(
  tasks: Tasks,
  limit: number,
  options: Partial<ClaimOptions> = {},
): Promise<readonly ClaimedTask[]> {
  return tasks.claim({
    worker,
    types: { [email]: limit },
    waitMs: 0,
    leaseMs: longLeaseMs,
    ...options,
  });
}

export async function claimOne(tasks: Tasks, type = email, by = worker): Promise<ClaimedTask> {
  const [claimed] = await claimSome(tasks, 1, { types: { [type]: 1 }, worker: by });
  return claimed ?? assert.fail(`no ${type} job was available`);
}

export async function nothingIn(tasks: Tasks, type = email): Promise<void> {
  const claimed = await claimSome(tasks, 10, { types: { [type]: 10 }, worker: 'idle-worker' });
  assert.deepEqual(numbersOf(claimed), []);
}

export const numbered = (count: number, rest: Partial<NewTask> = {}): NewTask[] =>
  Array.from({ length: count }, (_, n) => ({ type: email, payload: { n }, ...rest }));

export const numbersOf = (claimed: readonly ClaimedTask[]): number[] =>
  claimed.map(({ task }) => (task.payload as { readonly n: number }).n);

export async function enqueueNumbers(
  tasks: Tasks,
  count: number,
  rest: Partial<NewTask> = {},
): Promise<readonly string[]> {
  return (await tasks.enqueueMany(numbered(count, rest))).map(({ id }) => id);
}

/** A field of a signal's payload. */
export const fieldOf = (payload: unknown, field: string): unknown =>
  (payload as Readonly<Record<string, unknown>> | undefined)?.[field];

export async function stateOf(tasks: Tasks, id: string): Promise<string | undefined> {
  return (await tasks.get(id))?.state;
}

export async function secondOf({ opened, clock }: TasksCaseContext): Promise<Tasks> {
  const second = opened.second?.({ clock, types: caseTypes });
  return second ?? assert.fail('the fixture has no second process');
}

export async function openCase(
  fixture: TasksFixture,
  isRealTime: boolean,
): Promise<TasksCaseContext> {
  const clock = fakeClock();
  const opened = await fixture.open({ clock: isRealTime ? systemClock : clock, types: caseTypes });
  return { opened, clock, capabilities: fixture.capabilities };
}
