// What a flow has started outside of the event store: jobs, messages of topics, and the timers of its sagas. Jobs and
// messages have no index by correlation id, so a bounded number of them around the time of the flow is searched.

import { subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import { hasCode } from '../foundation/error.ts';
import { sagaAt } from '../reactors/saga-admin.ts';
import { isFactType, isFirstFact } from '../reactors/saga-fact.ts';
import { categoryOf } from '../store/stream-category.ts';
import type { Task } from '../tasks/task-record.ts';
import type { Tasks } from '../tasks/tasks.ts';
import type { TracedFlow } from '../traces/create-traces.ts';
import type {
  TracedPublication,
  TracedSaga,
  TracedTask,
  TracedWork,
} from '../traces/trace-node.ts';
import type { PlatformEngines } from './engines/platform-engines.ts';

interface WorkSources {
  readonly clock: Clock;
  readonly engines: Pick<PlatformEngines, 'bus' | 'has' | 'sagas' | 'store'>;
  readonly tasks: () => Promise<Tasks>;
}

const jobsSearched = 1_000;
/** A page of jobs, which may be large. */
const jobBytes = 524_288;
const messagesSearched = 2_000;
const searchMsMax = 500;
const sagasMax = 20;
/** Upper bound for the difference between the clocks of two machines. */
const skewMs = 1_000;
/** How long after the last event of a flow its jobs and messages are searched. */
const afterMs = 600_000;

export function tracedWorkOf(sources: WorkSources): (flow: TracedFlow) => Promise<TracedWork> {
  return async (flow) => {
    const [tasks, publications, sagas] = await Promise.all([
      tasksOf(sources, flow).catch(withoutIt),
      publicationsOf(sources, flow).catch(withoutIt),
      sagasOf(sources, flow),
    ]);
    return {
      tasks: tasks.found,
      publications: publications.found,
      sagas: sagas.found,
      isCut: tasks.isCut || publications.isCut || sagas.isCut,
    };
  };
}

interface Found<Item> {
  readonly found: readonly Item[];
  readonly isCut: boolean;
}

/** Events are shown without jobs and messages while the engine of these is down. */
function withoutIt(error: unknown): Found<never> {
  if (hasCode(error, 'BUS_UNAVAILABLE') || hasCode(error, 'TASKS_UNAVAILABLE')) {
    return { found: [], isCut: true };
  }
  throw error;
}

async function tasksOf(
  { engines, tasks: open }: WorkSources,
  { correlationId, tenant, events, signal }: TracedFlow,
): Promise<Found<TracedTask>> {
  if (!engines.has('tasks')) return { found: [], isCut: false };
  const tasks = await open();
  const span = spanOf(events);
  const query = {
    tenant,
    enqueuedFrom: span && new Date(span.fromMs),
    enqueuedBefore: span && new Date(span.toMs),
  };
  const jobs = new Map<string, TracedTask>();
  const first = await jobWithId(tasks, correlationId);
  // The flow of a job that was enqueued without a correlation id has the id of the job.
  if (first !== undefined && (tenant === undefined || first.tenant === tenant)) {
    jobs.set(first.id, toTraced(first));
  }
  let cursor: string | undefined;
  let searched = 0;
  do {
    signal?.throwIfAborted();
    const page = await tasks.list(query, { cursor, limit: 200, bytesMax: jobBytes });
    searched += page.tasks.length;
    for (const job of page.tasks) {
      if (job.correlationId === correlationId) jobs.set(job.id, toTraced(job));
    }
    cursor = page.cursor;
  } while (cursor !== undefined && searched < jobsSearched);
  // Without events the time of the flow is unknown, and only the newest jobs are searched.
  return {
    found: [...jobs.values()].toReversed(),
    isCut: cursor !== undefined && span !== undefined,
  };
}

/** Undefined also if the text is not the id of a job. */
export async function jobWithId(tasks: Tasks, id: string): Promise<Task | undefined> {
  try {
    return await tasks.get(id);
  } catch (error) {
    if (hasCode(error, 'TASK_INVALID')) return undefined;
    throw error;
  }
}

function toTraced(job: Task): TracedTask {
  const { id, type, tenant, state, attempt, parentId, causationId, waitsFor } = job;
  const { enqueuedAt, claimedAt, endedAt, dueAt } = job;
  const isWaiting = state === 'scheduled' || state === 'waiting';
  return {
    id,
    type,
    tenant,
    state,
    attempt,
    parentId,
    causationId,
    enqueuedAt,
    claimedAt,
    endedAt,
    dueAt: isWaiting ? dueAt : undefined,
    waitsFor: waitsFor?.kind === 'event' ? `event ${waitsFor.event}` : waitsFor?.kind,
    error: job.error?.message,
  };
}

async function publicationsOf(
  { clock, engines }: WorkSources,
  { correlationId, tenant, events, signal }: TracedFlow,
): Promise<Found<TracedPublication>> {
  const span = spanOf(events);
  if (span === undefined || !engines.has('bus')) return { found: [], isCut: false };
  const bus = await engines.bus();
  const found: TracedPublication[] = [];
  const endMs = clock.now() + searchMsMax;
  let searched = 0;
  const from = { time: new Date(span.fromMs) };
  for await (const message of bus.read(`${topicPrefix}>`, { from, signal })) {
    if (message.storedAt.getTime() > span.toMs) break;
    if (message.correlationId === correlationId && isWithin(tenant, message.tenant)) {
      const { id, subject, causationId, storedAt } = message;
      const topic = subject.slice(topicPrefix.length);
      found.push({ id, topic, tenant: message.tenant, causationId, storedAt });
    }
    searched += 1;
    if (searched >= messagesSearched || clock.now() >= endMs) return { found, isCut: true };
  }
  return { found, isCut: false };
}

const topicPrefix = subjects.notify.topic('x').slice(0, -1);

function isWithin(tenant: string | undefined, owner: string | undefined): boolean {
  return tenant === undefined || owner === tenant;
}

async function sagasOf(
  { clock, engines }: WorkSources,
  { events }: TracedFlow,
): Promise<Found<TracedSaga>> {
  // Events of an aggregate may have such types, too: one stream of each category is read.
  const streams = Map.groupBy(
    new Set(events.filter(({ type }) => isFactType(type)).map(({ stream }) => stream)),
    (stream) => categoryOf(stream),
  );
  const sagas: string[] = [];
  for (const own of streams.values()) {
    const [first] = await engines.store.readStream(own[0] ?? '', { limit: 1 }).toArray();
    if (first !== undefined && isFirstFact(first)) sagas.push(...own);
  }
  const found: TracedSaga[] = [];
  for (const stream of sagas.slice(0, sagasMax)) {
    const { sagas: admin, address, name } = await sagaAt(engines, stream, { clock });
    const { key, status, timers, reason, parked } = await admin.get(address);
    if (status === 'completed' && timers.length === 0) continue;
    found.push({ stream, saga: name, key, status, reason: parked?.reason ?? reason, timers });
  }
  return { found, isCut: sagas.length > sagasMax };
}

function spanOf(
  events: TracedFlow['events'],
): { readonly fromMs: number; readonly toMs: number } | undefined {
  const times = events.map(({ recordedAt }) => Date.parse(recordedAt));
  if (times.length === 0) return undefined;
  return { fromMs: Math.min(...times) - skewMs, toMs: Math.max(...times) + afterMs };
}
