// Queues requests again that have neither a live job nor a lock, and restores lost read models. Jobs and read
// models are rebuilt from the event store.

import { slackAddressing } from 'millrace/contracts';
import type { ModuleContext } from 'millrace/platform';
import type { Projection } from 'millrace/projections';
import type { EventStore, Position } from 'millrace/store';
import type { KeyStore, WorkQueue } from 'millrace/work';
import { jobIdOf, replaceDispatched, roundOf, sendJob } from './dispatcher.ts';
import { requestCategory } from './fields.ts';
import { requestFailed, requestQueued, requestSent } from './message-request-events.ts';
import { messageRequest, tagsOf } from './message-request.ts';

export interface SweeperOptions {
  readonly context: Pick<ModuleContext, 'clock' | 'load' | 'observer' | 'readAll' | 'restore'>;
  readonly keys: KeyStore;
  readonly queue: WorkQueue;
  readonly projections: readonly Projection[];
  /** Age from which a request is checked. */
  readonly graceMs: number;
}

export interface Swept {
  readonly requeued: number;
  readonly restored: boolean;
}

/** If this key is missing, the key store has lost its data. */
const keptMarker = 'notification.slack:v1:kept';

export function createSweeper(options: SweeperOptions): (signal: AbortSignal) => Promise<Swept> {
  const { context, keys, queue, projections, graceMs } = options;
  const { clock, load, observer } = context;
  const openRequests = createOpenRequests(context.readAll);

  async function restoreLost(signal: AbortSignal): Promise<boolean> {
    if ((await keys.get(keptMarker)) !== undefined) return false;
    for (const each of projections) await context.restore(each, signal);
    await keys.putIfAbsent(keptMarker, String(clock.now()));
    return true;
  }

  /** True: the request was queued again. */
  async function requeueIfLost({ tenant, id }: OpenRequest): Promise<boolean> {
    if ((await keys.get(slackAddressing.sendLock(tenant, id))) !== undefined) return false;
    const { state } = await load(messageRequest, { tenant, id });
    if (state.status !== 'queued') return false;
    const { round } = state;
    const key = slackAddressing.dispatched(tenant, id);
    const before = (await keys.get(key))?.value;
    const known = before === undefined ? { round: 0, generation: 0 } : roundOf(before);
    const current = {
      tenant,
      id,
      round,
      generation: known.round === round ? known.generation : 1,
    };
    const job = await queue.state(slackAddressing.queueName, jobIdOf(current));
    if (job === 'waiting' || job === 'delayed' || job === 'active') return false;
    // The queue would ignore a job with the id of a finished one.
    const generation = job === undefined ? current.generation : current.generation + 1;
    const next = { ...current, generation };
    const to = jobIdOf(next);
    if (before !== to && !(await replaceDispatched(keys, key, { from: before, to }))) return false;
    await queue.add(slackAddressing.queueName, [sendJob(next, state, clock.now())]);
    observer.count?.('slack_requests_requeued_total', { tenant });
    const tags = { tenant, messageRequestId: id, jobId: to, ...tagsOf(state) };
    observer.log?.warn(tags, 'request requeued');
    return true;
  }

  return async (signal) => {
    const restored = await restoreLost(signal);
    let requeued = 0;
    for (const request of await openRequests(signal)) {
      signal.throwIfAborted();
      if (request.dueAtMs + graceMs > clock.now()) continue;
      if (await requeueIfLost(request)) requeued += 1;
    }
    return { requeued, restored };
  };
}

// Open requests, read from the event store once and then incrementally: independent of the data in Redis.
interface OpenRequest {
  readonly tenant: string;
  readonly id: string;
  /** Time at which the request should be sent. */
  readonly dueAtMs: number;
}

/** Returns a function that lists the open requests, oldest first. */
function createOpenRequests(
  readAll: EventStore['readAll'],
): (signal: AbortSignal) => Promise<readonly OpenRequest[]> {
  const open = new Map<string, OpenRequest>();
  let after: Position | undefined;
  const types = [requestQueued.type, requestSent.type, requestFailed.type];
  const filter = { types, category: requestCategory };

  return async (signal) => {
    for await (const event of readAll({ filter, after, signal })) {
      const { tenant, aggregate, occurredAt, payload, position } = event;
      const key = `${tenant} ${aggregate.id}`;
      open.delete(key);
      if (requestQueued.is(event)) {
        const { dueAt = occurredAt } = requestQueued.parse(payload);
        open.set(key, { tenant, id: aggregate.id, dueAtMs: Date.parse(dueAt) });
      }
      after = position;
    }
    return [...open.values()];
  };
}
