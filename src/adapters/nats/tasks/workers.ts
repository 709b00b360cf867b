// The group `<type>-workers` of each type's queue, as everybody's bus has it. Claims go past it; what was handed
// out is acked here, from the old end up to the first job that still waits, so that the stream may be trimmed.

import type { GroupSettings } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { redoSubject } from '../../../bus/dead-letter.ts';
import { consumerGroups } from '../../../contracts/subject-groups.ts';
import type { Subjects } from '../../../contracts/subjects.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { Append } from '../bus/append.ts';
import { createBusConsumers, type ConsumerInfo } from '../bus/consumers.ts';
import { createBusLeases } from '../bus/fetch.ts';
import type { BusReader } from '../bus/read.ts';
import type { BusParts, BusStreams } from '../bus/streams.ts';
import { isRefused, refusals } from '../connection/jetstream-wire.ts';
import type { TaskIndex } from './task-index.ts';
import { plainId } from './signals.ts';

export interface WorkersGroups {
  /** Of all types that have jobs. */
  ack(): Promise<void>;
}

/** Of one type at once; the next sweep goes on. */
const ackedMax = 5_000;
const fetchMax = 500;

export function createWorkersGroups(context: {
  readonly parts: BusParts;
  readonly streams: BusStreams;
  readonly append: Append;
  readonly reader: BusReader;
  readonly index: TaskIndex;
  readonly subjects: Subjects<string>;
  /** What anybody had written before is in the index then. */
  readonly sync: () => Promise<void>;
}): WorkersGroups {
  const { parts, streams, reader, index, subjects } = context;
  const consumers = createBusConsumers(parts, streams);
  const leases = createBusLeases(parts, consumers, context.append);
  const known = new Map<string, GroupSettings>();

  async function groupOf(type: string): Promise<GroupSettings> {
    const before = known.get(type);
    if (before !== undefined) return before;
    const name = consumerGroups.workers<string>(type);
    const settings: GroupSettings = {
      name,
      filters: [subjects.tasks.type<string>(type).queue, redoSubject(name)],
      start: 'start',
      leaseMs: busLimits.leaseMsDefault,
      maxAckPending: busLimits.maxAckPendingDefault,
    };
    await consumers.ensure(settings);
    known.set(type, settings);
    return settings;
  }

  /** Those from the floor on, in order, up to the first whose job waits for a worker. */
  async function handedOut(subject: string, floor: number): Promise<ReadonlySet<string>> {
    const told: { readonly sequence: string; readonly messageId: string }[] = [];
    for await (const { sequence, messageId } of reader.headers(subject, floor + 1)) {
      told.push({ sequence: String(sequence), messageId });
      if (told.length === ackedMax) break;
    }
    // Records come before their signals: behind this, a job that is not known is gone.
    await context.sync();
    const waiting = told.findIndex(({ messageId }) => isWaiting(messageId));
    const over = waiting < 0 ? told : told.slice(0, waiting);
    return new Set(over.map(({ sequence }) => sequence));
  }

  /** Each wait for a worker has a fence of its own, which its signal names. */
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
    const info = await parts.wire.ask<ConsumerInfo>(`CONSUMER.INFO.${stream}.${main}`);
    if (info.num_pending + info.num_ack_pending === 0) return;
    const [subject = ''] = settings.filters;
    const over = await handedOut(subject, info.ack_floor.stream_seq);
    const { signal } = new AbortController();
    for (let left = over.size; left > 0;) {
      const limit = Math.min(left, fetchMax);
      const some = await leases.fetch(settings, { limit, waitMs: 0, signal });
      if (some.length === 0) return;
      await leases.settle(
        settings,
        // Another process may have acked meanwhile, and what came is not what was looked at.
        some.map(({ sequence, token }) =>
          over.has(sequence) ? { kind: 'ack', token } : { kind: 'release', token },
        ),
      );
      if (some.some(({ sequence }) => !over.has(sequence))) return;
      left -= some.length;
    }
  }

  return {
    async ack() {
      for (const { type, states } of index.counts()) {
        if (Object.values(states).every((count) => count === 0)) continue;
        try {
          await ackOf(type);
        } catch (error) {
          // Deleted by somebody, or lost with its stream: the next sweep makes it anew.
          known.delete(type);
          consumers.forget(consumerGroups.workers<string>(type));
          if (!isGone(error)) throw error;
        }
      }
    },
  };
}

function isGone(error: unknown): boolean {
  return (
    hasCode(error, 'BUS_GROUP_UNKNOWN') ||
    isRefused(error, refusals.consumerNotFound, refusals.streamNotFound)
  );
}
