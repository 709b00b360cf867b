// Scheduled messages. The bus stores them in `gbe.notify._scheduled.<topic>`, and one consumer group of all
// processes delivers each of them at its time.
//
// A process killed before it published the message: its lease expires, and another process publishes it. A
// process killed between publish and ack: the next process finds the id in the topic, and only acks.

import { subjects } from '../contracts/subjects.ts';
import type { Clock } from '../foundation/clock.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { TopicBus, TopicBusDelivery } from './topic-bus.ts';
import { headersAbout, type TopicLog } from './topic-log.ts';
import type { TopicMessage } from './topic-message.ts';

type ScheduleRecord =
  | { readonly kind: 'schedule'; readonly message: TopicMessage }
  /** Cancels all earlier records of this sequence id. */
  | { readonly kind: 'cancel'; readonly sequenceId: string };

export interface ScheduledMessages extends AsyncDisposable {
  /** Replaces what is scheduled under the same sequence id, and returns the replaced messages. */
  schedule(message: TopicMessage, subject?: string): Promise<readonly TopicMessage[]>;
  /** Returns the messages that will not be delivered. */
  cancel(topic: string, sequenceId: string): Promise<readonly TopicMessage[]>;
  /** Messages that are not delivered yet, by delivery time. */
  list(topic: string): Promise<readonly TopicMessage[]>;
}

const group = 'notify-scheduled';
const prefix = `${subjects.root}.notify._scheduled`;

/** As many as a group may have pending. */
const scheduledMax = 50_000;

export async function openScheduledMessages(
  bus: TopicBus,
  options: {
    readonly log: TopicLog;
    readonly clock: Clock;
    readonly delayMsMax: number;
    readonly onDelivered: (message: TopicMessage) => void;
    /** How long a message of a killed process waits for another process. Default: 10 s. */
    readonly leaseMs?: number | undefined;
  },
): Promise<ScheduledMessages> {
  const { log, clock, delayMsMax, onDelivered, leaseMs = 10_000 } = options;

  /** Messages of a topic that were not cancelled, including delivered ones. */
  async function notCancelled(topic: string): Promise<Map<string, TopicMessage>> {
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
    const all = [...(await notCancelled(topic)).values()];
    const pending = await Promise.all(
      all.map(async (each) => (isAhead(each) || !(await log.has(each, each.time)) ? [each] : [])),
    );
    return pending.flat().toSorted((a, b) => a.time - b.time);
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
    const wanted = await notCancelled(message.topic);
    if (!wanted.has(message.id) || (await log.has(message, message.time))) return;
    await log.append(message, delivery.headers[subjectHeader]);
    onDelivered(message);
  }

  const consumer = await bus.consume(
    { group, subject: `${prefix}.*`, leaseMs, maxDeliveries: 1_000, maxAckPending: scheduledMax },
    handle,
    { concurrency: 16, maxInFlight: 64 },
  );

  return {
    async schedule(message, about) {
      const before = message.sequence_id === undefined ? [] : await upcoming(message.topic);
      const record: ScheduleRecord = { kind: 'schedule', message };
      const subject = `${prefix}.${message.topic}`;
      const headers = headersAbout(about);
      await bus.publish({ subject, id: message.id, headers, payload: record });
      return before.filter((each) => sequenceOf(each) === message.sequence_id);
    },
    async cancel(topic, sequenceId) {
      const cancelled = (await upcoming(topic)).filter((each) => sequenceOf(each) === sequenceId);
      if (cancelled.length === 0) return [];
      const record: ScheduleRecord = { kind: 'cancel', sequenceId };
      // Two requests that cancel the same messages publish one record.
      const id = `cancel:${cancelled.map((each) => each.id).join(',')}`.slice(0, 128);
      await bus.publish({ subject: `${prefix}.${topic}`, id, payload: record });
      return cancelled;
    },
    list: upcoming,
    [Symbol.asyncDispose]: () => consumer[Symbol.asyncDispose](),
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
