// What whoever follows a customer is told, made of the events of the inbox; pure.

import type { RecordedEvent } from '../store/recorded-event.ts';
import { toldBy } from './customer-bus.ts';
import { inboxAcknowledged, inboxMerged } from './customer-events.ts';
import type { Category, Notice } from './customer-schemas.ts';

/** A notification, a reminder of one, one more like it, or the end of it. */
export type CustomerNews =
  | {
      readonly kind: 'notification';
      /** To go on behind it. */
      readonly position: string;
      readonly notificationId: string;
      readonly category: Category;
      readonly title: string;
      readonly body?: string;
      readonly count: number;
      readonly digest?: NonNullable<Notice['digest']>;
      /** 0: it is told for the first time. */
      readonly reminder: number;
      readonly at: string;
    }
  | {
      readonly kind: 'merged';
      readonly position: string;
      readonly notificationId: string;
      readonly count: number;
      readonly at: string;
    }
  | {
      readonly kind: 'acknowledged';
      readonly position: string;
      readonly notificationId: string;
      readonly by: string;
      readonly at: string;
    };

export function newsOf(event: RecordedEvent): CustomerNews | undefined {
  const position = String(event.revision);
  const told = toldBy(event);
  if (told !== undefined) {
    if (!told.channels.includes('socket')) return undefined;
    const { notificationId, category, title, body, count, digest } = told.notice;
    return {
      kind: 'notification',
      position,
      notificationId,
      category,
      title,
      ...(body === undefined ? {} : { body }),
      count,
      ...(digest === undefined ? {} : { digest }),
      reminder: told.step,
      at: event.occurredAt,
    };
  }
  if (inboxMerged.is(event)) {
    const { notificationId, count, at } = event.payload;
    return { kind: 'merged', position, notificationId, count, at };
  }
  if (inboxAcknowledged.is(event)) {
    const { notificationId, by, at } = event.payload;
    return { kind: 'acknowledged', position, notificationId, by, at };
  }
  return undefined;
}
