// The sending part of the module: directly (strategy A), or through queues (strategy B).

import type { Delivery } from '../delivery/create-delivery.ts';
import type { Observer } from '../foundation/observer.ts';
import { createOutboxDispatcher, type OutboxDispatcher } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import { createQueueDispatcher, type QueueDispatcher } from '../outbox/queue-dispatcher.ts';
import { createQueueWorker, type QueueWorker } from '../outbox/queue-worker.ts';
import type { OutboxSettings } from '../platform/config/outbox-environment.ts';
import { deadLettersTo, sendingBy } from '../platform/outbox-settings.ts';
import type { WorkQueue } from '../work/work-queue.ts';
import type { MillraceOutboxOptions } from './millrace-options.ts';

export interface Sender {
  readonly delivery?: Delivery | undefined;
  readonly dispatcher?: OutboxDispatcher | QueueDispatcher | undefined;
  readonly worker?: QueueWorker | undefined;
}

export interface SenderContext {
  readonly ledger: OutboxLedger | undefined;
  readonly queue: WorkQueue | undefined;
  readonly settings: OutboxSettings;
  readonly observer: Observer;
}

export function createSender(
  { destinations, deliver, dispatcher: tuning, queue: names = {} }: MillraceOutboxOptions,
  { ledger, queue, settings, observer }: SenderContext,
): Sender {
  const sending = destinations && sendingBy(settings, destinations, { observer });
  const delivery = sending?.delivery;
  if (ledger === undefined) return { delivery };
  const { batchSize, tickIntervalMs } = settings;
  const claims = { ledger, batchSize, tickIntervalMs, observer };
  const sends =
    deliver === undefined
      ? sending?.optionsFor(ledger)
      : { ...claims, deliver, ...deadLettersTo(settings)(ledger) };
  if (queue === undefined) {
    return { delivery, dispatcher: sends && createOutboxDispatcher({ ...sends, ...tuning }) };
  }
  return {
    delivery,
    dispatcher: createQueueDispatcher({ ...claims, ...tuning, ...names, queue }),
    worker: sends && createQueueWorker({ ...sends, ...tuning, ...names, queue }),
  };
}
