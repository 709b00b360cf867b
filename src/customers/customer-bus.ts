// From the inboxes to the bus: what was delivered is published on the customer's subject, and on the topic where
// the customer wants that; a broadcast on its own. A subscription: what is stored is published, whoever dies.

import type { Bus } from '../bus/bus.ts';
import type { NewMessage } from '../bus/bus-message.ts';
import { createSubjects } from '../contracts/subjects.ts';
import { hasCode } from '../foundation/error.ts';
import { traceOf } from '../foundation/trace-of.ts';
import type { ModuleContext } from '../platform/modules/platform-module.ts';
import { isForgotten } from '../store/erasure.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { Snooze } from '../subscriptions/handler-outcome.ts';
import { subscription, type Subscription } from '../subscriptions/subscription.ts';
import { broadcastPublished } from './broadcast-events.ts';
import { customerContact } from './customer-contact.ts';
import { inboxDelivered, inboxReminded } from './customer-events.ts';
import type { Channel, Notice } from './customer-schemas.ts';

export interface CustomerBusOptions {
  /** Of the subjects. Default: `gbe`. */
  readonly root?: string;
}

const retryMs = 1_000;

export function customerBus(
  { bus, load }: Pick<ModuleContext, 'bus' | 'load'>,
  { root = 'gbe' }: CustomerBusOptions = {},
): Subscription {
  const subjects = createSubjects({ root });
  return subscription({
    name: 'sub:notify:bus:v1',
    filter: { types: [inboxDelivered.type, inboxReminded.type, broadcastPublished.type] },
    async handler(event, { signal }) {
      if (isForgotten(event.payload)) return;
      const { tenant, aggregate } = event;
      const told = toldBy(event);
      const contact =
        told?.channels.includes('topic') === true
          ? (await load(customerContact, { tenant, id: aggregate.id, signal })).state
          : undefined;
      await publishAll(await bus(), messagesOf(event, { topic: contact?.topic, subjects }));
    },
  });
}

interface Told {
  readonly notice: Notice;
  readonly channels: readonly Channel[];
  /** 0: it is told for the first time. */
  readonly step: number;
}

export function toldBy(event: RecordedEvent): Told | undefined {
  if (inboxDelivered.is(event)) return { ...event.payload, step: 0 };
  return inboxReminded.is(event) && event.payload.isSuppressed !== true ? event.payload : undefined;
}

/** The same for whoever publishes it again: the bus takes each id once within its window. */
export function deliveryIdOf({ notice, step }: Pick<Told, 'notice' | 'step'>): string {
  return step === 0 ? notice.notificationId : `${notice.notificationId}.${step}`;
}

/** Pure. */
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
  const common = commonOf(event);
  if (broadcastPublished.is(event)) {
    const { category } = event.payload;
    const payload = { broadcastId: event.aggregate.id, ...event.payload };
    const subject = subjects.notify.broadcast[category];
    return [{ ...common, subject, id: event.aggregate.id, payload }];
  }
  const told = toldBy(event);
  if (told === undefined) return [];
  const { notice, channels, step } = told;
  const id = deliveryIdOf(told);
  const { category } = notice;
  const messages: NewMessage[] = [];
  // A broadcast has a subject of its own, and everybody is told there.
  if (category === 'alert' || category === 'info' || category === 'digest') {
    const customerId = event.aggregate.id;
    const { nag: _nag, mergeMs: _merge, ...words } = notice;
    const payload = { customerId, ...words, reminder: step, at: event.occurredAt };
    messages.push({
      ...common,
      subject: subjects.notify.customer(customerId)[category],
      id,
      payload,
    });
  }
  if (topic !== undefined && channels.includes('topic')) {
    const payload = topicPayload(notice, step);
    messages.push({ ...common, subject: subjects.notify.topic(topic), id, payload });
  }
  return messages;
}

/** What servers of topics show of it. */
function topicPayload({ title, body, count, category }: Notice, step: number): object {
  return {
    title: count > 1 && category !== 'digest' ? `${title} (${count})` : title,
    message: body ?? title,
    priority: category === 'alert' ? 5 : 3,
    tags: step === 0 ? [category] : [category, 'reminder'],
  };
}

function commonOf(
  event: RecordedEvent,
): Pick<NewMessage, 'causationId' | 'correlationId' | 'tenant' | 'trace'> {
  const trace = traceOf(event.headers);
  return {
    tenant: event.tenant,
    correlationId: event.correlationId,
    causationId: event.eventId,
    ...(trace === undefined ? {} : { trace }),
  };
}

async function publishAll(bus: Bus, messages: readonly NewMessage[]): Promise<void> {
  try {
    if (messages.length > 0) await bus.publishMany(messages);
  } catch (error) {
    // The broker is away, however long: nobody's failure, and no dead letter.
    if (hasCode(error, 'BUS_UNAVAILABLE')) {
      throw new Snooze(retryMs, 'the bus is away', { cause: error });
    }
    throw error;
  }
}
