// From the inboxes to the bus: a delivered notification is published to the subject of the customer, and to the topic
// of the customer if that channel is enabled; a broadcast is published to its own subject.

import type { Bus, NewMessage } from 'millrace/bus';
import { createSubjects } from 'millrace/contracts';
import { hasCode, traceOf } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { isForgotten, subjectHeader, type RecordedEvent } from 'millrace/store';
import { Snooze, subscription, type Subscription } from 'millrace/subscriptions';
import { broadcastPublished } from './broadcast.ts';
import { customerContact, customerSubject, customerTopic } from './customer-contact.ts';
import { inboxDelivered, inboxReminded } from './customer-events.ts';
import type { Channel, Notice } from './customer-schemas.ts';

export interface CustomerBusOptions {
  /** The first token of the subjects. Default: `gbe`. */
  readonly root?: string | undefined;
}

const retryMs = 1_000;

export function customerBus(
  { bus, load }: Pick<ModuleContext, 'bus' | 'load'>,
  { root = 'gbe' }: CustomerBusOptions = {},
): Subscription {
  const subjects = createSubjects({ root });
  return subscription({
    name: 'sub:notify:bus:v1',
    filter: {
      types: [inboxDelivered.type, inboxReminded.type, broadcastPublished.type],
      streamPrefixes: ['notify.'],
    },
    async handler(event, { signal }) {
      const { tenant, aggregate } = event;
      const usesTopic = deliveryOf(event)?.channels.includes('topic') === true;
      const contact = usesTopic
        ? (await load(customerContact, { tenant, id: aggregate.id, signal })).state
        : undefined;
      await publishAll(await bus(), messagesOf(event, { topic: contact?.topic, subjects }));
    },
  });
}

interface NoticeDelivery {
  readonly notice: Notice;
  readonly channels: readonly Channel[];
  /** 0 for the first delivery, then the number of the reminder. */
  readonly step: number;
}

/** The delivery that an event of an inbox stands for, if any. */
export function deliveryOf(event: RecordedEvent): NoticeDelivery | undefined {
  if (isForgotten(event.payload)) return undefined;
  if (inboxDelivered.is(event)) return { ...event.payload, step: 0 };
  return inboxReminded.is(event) && event.payload.isSuppressed !== true ? event.payload : undefined;
}

/** Derived, so that the bus recognizes a repeated publish as a duplicate. */
export function deliveryIdOf({ notice, step }: Pick<NoticeDelivery, 'notice' | 'step'>): string {
  return step === 0 ? notice.notificationId : `${notice.notificationId}.${step}`;
}

/** The fields of a notification that receivers see. */
export function contentOf({ nag: _nag, mergeMs: _mergeMs, ...content }: Notice) {
  return content;
}

/** With the number of merged notifications. */
export function titleOf({ title, count, category }: Notice): string {
  return count > 1 && category !== 'digest' ? `${title} (${count})` : title;
}

export function messagesOf(
  event: RecordedEvent,
  {
    topic,
    subjects,
  }: {
    readonly topic?: string | undefined;
    readonly subjects: ReturnType<typeof createSubjects<string>>;
  },
): readonly NewMessage[] {
  const { tenant, correlationId, eventId: causationId, aggregate } = event;
  const common = { tenant, correlationId, causationId, trace: traceOf(event.headers) };
  if (broadcastPublished.is(event)) {
    const { category } = event.payload;
    const payload = { broadcastId: aggregate.id, ...event.payload };
    const subject = subjects.notify.broadcast[category];
    return [{ ...common, subject, id: aggregate.id, payload }];
  }
  const delivery = deliveryOf(event);
  if (delivery === undefined) return [];
  const { notice, channels, step } = delivery;
  const id = deliveryIdOf(delivery);
  const { category } = notice;
  const headers = { [subjectHeader]: customerSubject(tenant, aggregate.id) };
  const messages: NewMessage[] = [];
  // Notifications of a broadcast are left out: the broadcast itself was published to its own subject.
  if (category === 'alert' || category === 'info' || category === 'digest') {
    const customerId = aggregate.id;
    const at = event.occurredAt;
    const payload = { customerId, ...contentOf(notice), reminder: step, at };
    const subject = subjects.notify.customer(customerId)[category];
    messages.push({ ...common, subject, id, payload, headers });
  }
  const topicName = topic === undefined ? undefined : customerTopic(tenant, topic);
  if (topicName !== undefined && channels.includes('topic')) {
    const payload = topicPayload(notice, step);
    messages.push({ ...common, subject: subjects.notify.topic(topicName), id, payload, headers });
  }
  return messages;
}

/** The fields of an ntfy message. */
function topicPayload(notice: Notice, step: number): object {
  const { title, body, category } = notice;
  return {
    title: titleOf(notice),
    message: body ?? title,
    priority: category === 'alert' ? 5 : 3,
    tags: step === 0 ? [category] : [category, 'reminder'],
  };
}

async function publishAll(bus: Bus, messages: readonly NewMessage[]): Promise<void> {
  try {
    if (messages.length > 0) await bus.publishMany(messages);
  } catch (error) {
    // The customer was forgotten after the event was read.
    if (hasCode(error, 'SUBJECT_FORGOTTEN')) return;
    // An outage of the broker is not a failure of the event: retry until it ends, without a dead letter.
    if (hasCode(error, 'BUS_UNAVAILABLE')) {
      throw new Snooze(retryMs, 'the bus is unavailable', { cause: error });
    }
    throw error;
  }
}
