// Messages for later. They stand in streams of the bus (`gbe.notify._scheduled.<topic>`) and a group of all
// processes waits for each of them: one lease, one delivery, whoever lives.
//
// Killed before it was published: the lease runs out, and another process publishes it. Killed between that
// and the ack: whoever gets it next finds its id in the topic, and only acks.

import { subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import type { TopicBus, TopicBusDelivery } from './topic-bus.ts';
import type { TopicLog } from './topic-log.ts';
import type { TopicMessage } from './topic-message.ts';

type ScheduleRecord =
  | { readonly kind: 'schedule'; readonly message: TopicMessage }
  /** All before it of this sequence id. */
  | { readonly kind: 'cancel'; readonly sequenceId: string };

export interface ScheduledMessages extends AsyncDisposable {
  /** Instead of what was scheduled under its sequence id. */
  schedule(message: TopicMessage): Promise<readonly TopicMessage[]>;
  /** Returns what will not be delivered. */
  cancel(topic: string, sequenceId: string): Promise<readonly TopicMessage[]>;
  /** What is to come, by its time. */
  list(topic: string): Promise<readonly TopicMessage[]>;
}

const group = 'notify-scheduled';
const prefix = `${subjects.root}.notify._scheduled`;

/** Bounds of how many may wait: as many as a group may have pending. */
const scheduledMax = 50_000;

export async function openScheduledMessages(
  bus: TopicBus,
  options: {
    readonly log: TopicLog;
    readonly clock: Clock;
    readonly delayMsMax: number;
    /** False: another process waits for them. */
    readonly isWaiting: boolean;
    readonly onDelivered: (message: TopicMessage) => void;
    /** How long another process waits for one that died. Default: 10 s. */
    readonly leaseMs?: number;
  },
): Promise<ScheduledMessages> {
  const { log, clock, delayMsMax, isWaiting, onDelivered, leaseMs = 10_000 } = options;

  /** Those of a topic that were not called off, delivered ones among them. */
  async function standing(topic: string): Promise<Map<string, TopicMessage>> {
    const time = new Date(clock.now() - delayMsMax - 3_600_000);
    const found = new Map<string, TopicMessage>();
    for await (const { payload } of bus.read(`${prefix}.${topic}`, { from: { time } })) {
      apply(found, payload as ScheduleRecord);
    }
    return found;
  }

  const isAhead = ({ time }: TopicMessage): boolean => time * 1_000 > clock.now();

  async function upcoming(topic: string): Promise<readonly TopicMessage[]> {
    const known = (await bus.stream(`${prefix}.${topic}`))?.lastSequence;
    if (known === undefined) return [];
    const all = [...(await standing(topic)).values()];
    const late = await Promise.all(
      all.map(async (each) => (isAhead(each) || !(await log.has(each, each.time)) ? [each] : [])),
    );
    return late.flat().toSorted((a, b) => a.time - b.time);
  }

  async function handle(delivery: TopicBusDelivery): Promise<void> {
    const record = delivery.payload as ScheduleRecord;
    if (record.kind !== 'schedule') return;
    const { message } = record;
    const leftMs = message.time * 1_000 - clock.now();
    if (leftMs > 0) {
      await delivery.nack({ delayMs: Math.ceil(leftMs) });
      return;
    }
    const wanted = await standing(message.topic);
    if (!wanted.has(message.id) || (await log.has(message, message.time))) return;
    await log.appendOnce(message);
    onDelivered(message);
  }

  const consumer = isWaiting
    ? await bus.consume(
        {
          group,
          subject: `${prefix}.*`,
          leaseMs,
          maxDeliveries: 1_000,
          maxAckPending: scheduledMax,
        },
        handle,
        { concurrency: 16, maxInFlight: 64 },
      )
    : undefined;

  return {
    async schedule(message) {
      const before = message.sequence_id === undefined ? [] : await upcoming(message.topic);
      const record: ScheduleRecord = { kind: 'schedule', message };
      await bus.publish({ subject: `${prefix}.${message.topic}`, id: message.id, payload: record });
      return before.filter((each) => sequenceOf(each) === message.sequence_id);
    },
    async cancel(topic, sequenceId) {
      const meant = (await upcoming(topic)).filter((each) => sequenceOf(each) === sequenceId);
      if (meant.length === 0) return [];
      const record: ScheduleRecord = { kind: 'cancel', sequenceId };
      // One for all who call these very ones off.
      const id = `cancel:${meant.map((each) => each.id).join(',')}`.slice(0, 128);
      await bus.publish({ subject: `${prefix}.${topic}`, id, payload: record });
      return meant;
    },
    list: upcoming,
    async [Symbol.asyncDispose]() {
      await consumer?.[Symbol.asyncDispose]();
    },
  };
}

function apply(found: Map<string, TopicMessage>, record: ScheduleRecord): void {
  const sequenceId = record.kind === 'cancel' ? record.sequenceId : sequenceOf(record.message);
  for (const [id, message] of found) if (sequenceOf(message) === sequenceId) found.delete(id);
  if (record.kind === 'schedule') found.set(record.message.id, record.message);
}

function sequenceOf({ id, sequence_id: sequenceId = id }: TopicMessage): string {
  return sequenceId;
}
