// The group `<type>-workers` of each queue stream. Claims do not use the group, so this file acks the messages of claimed
// jobs: from the oldest message up to the first job that still waits. Acked messages can be trimmed.

import type { GroupSettings } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { redoSubject } from '../../../bus/dead-letter.ts';
import { consumerGroups, type Subjects } from '../../../contracts/subjects.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { BusLog } from '../bus/bus.ts';
import { createBusConsumers } from '../bus/consumers.ts';
import { createBusLeases } from '../bus/fetch.ts';
import { isApiError, apiErrorCodes, type ConsumerInfo } from '../connection/jetstream-wire.ts';
import type { TaskIndex } from './task-index.ts';
import { plainId } from './signals.ts';

/** The maximum number of acks per type and sweep; the next sweep continues. */
const ackedMax = 5_000;
const fetchMax = 500;

interface WorkersGroupsContext extends BusLog {
  readonly index: TaskIndex;
  readonly subjects: Subjects<string>;
  /** Resolves when the index has everything that was written before. */
  readonly sync: () => Promise<void>;
}

/** Returns a function that acks for all types that have jobs. */
export function createWorkersGroups(context: WorkersGroupsContext): () => Promise<void> {
  const { parts, streams, reader, index, subjects } = context;
  const consumers = createBusConsumers(parts, streams, reader);
  const leases = createBusLeases(parts, consumers, context.append);
  const known = new Map<string, GroupSettings>();

  async function groupOf(type: string): Promise<GroupSettings> {
    const cached = known.get(type);
    if (cached !== undefined) return cached;
    const name = consumerGroups.workers<string>(type);
    const settings: GroupSettings = {
      name,
      filters: [subjects.tasks.type<string>(type).queue, redoSubject(name)],
      from: 'start',
      leaseMs: busLimits.leaseMsDefault,
      maxAckPending: busLimits.maxAckPendingDefault,
    };
    await consumers.ensure(settings);
    known.set(type, settings);
    return settings;
  }

  /** Returns the sequences after the ack floor, up to the first one whose job waits for a worker. */
  async function claimedSequences(subject: string, floor: number): Promise<ReadonlySet<string>> {
    const messages: { readonly sequence: string; readonly messageId: string }[] = [];
    for await (const { sequence, messageId } of reader.headers(subject, floor + 1)) {
      messages.push({ sequence: String(sequence), messageId });
      if (messages.length === ackedMax) break;
    }
    // A job is written before its signal: after the sync, a job that the index does not have was removed.
    await context.sync();
    const waiting = messages.findIndex(({ messageId }) => isWaiting(messageId));
    const claimed = waiting < 0 ? messages : messages.slice(0, waiting);
    return new Set(claimed.map(({ sequence }) => sequence));
  }

  /**
   * Whether the job of a queue signal still waits for a worker. Each wait has a new fence, and the signal contains the
   * fence.
   */
  function isWaiting(messageId: string): boolean {
    const id = decodeURIComponent(plainId(messageId).slice(messageId.indexOf(':') + 1));
    const [, taskId, fence] = /^q:(.+):(\d+)$/.exec(id) ?? [];
    if (taskId === undefined) return false;
    const task = index.find(taskId);
    const isOpen = task?.state === 'queued' || task?.state === 'scheduled';
    return isOpen && task.row?.head.fence === Number(fence);
  }

  async function ackOf(type: string): Promise<void> {
    const settings = await groupOf(type);
    const { stream, main } = await consumers.find(settings.name);
    const info = await parts.wire.request<ConsumerInfo>(`CONSUMER.INFO.${stream}.${main}`);
    if (info.num_pending + info.num_ack_pending === 0) return;
    const [subject = ''] = settings.filters;
    const claimed = await claimedSequences(subject, info.ack_floor.stream_seq);
    const { signal } = new AbortController();
    for (let left = claimed.size; left > 0;) {
      const limit = Math.min(left, fetchMax);
      const fetched = await leases.fetch(settings, { limit, waitMs: 0, signal });
      if (fetched.length === 0) return;
      await leases.settle(
        settings,
        // Another process may have acked since, so other messages may have been fetched.
        fetched.map(({ sequence, token }) =>
          claimed.has(sequence) ? { kind: 'ack', token } : { kind: 'release', token },
        ),
      );
      if (fetched.some(({ sequence }) => !claimed.has(sequence))) return;
      left -= fetched.length;
    }
  }

  return async () => {
    for (const { type, states } of index.counts()) {
      if (Object.values(states).every((count) => count === 0)) continue;
      try {
        await ackOf(type);
      } catch (error) {
        // The group was deleted, or lost with its stream: the next sweep creates it again.
        known.delete(type);
        consumers.forget(consumerGroups.workers<string>(type));
        if (!isMissing(error)) throw error;
      }
    }
  };
}

function isMissing(error: unknown): boolean {
  return (
    hasCode(error, 'BUS_GROUP_UNKNOWN') ||
    isApiError(error, apiErrorCodes.consumerNotFound, apiErrorCodes.streamNotFound)
  );
}
