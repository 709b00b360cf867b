// The one call that most programs need.

import type { EventStore } from '../store/event-store.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import type { Saga } from './saga.ts';
import type { SagaHost } from './saga-index.ts';
import { createSagaRunner, type SagaOptions, type SagaRunner } from './saga-runner.ts';

/**
 * Runs a saga in this process, until it is stopped. Several processes may: one of them is at work on
 * each saga, and another one takes over where it was when it dies.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { defineEvent } from 'millrace/contracts';
 * import { saga, startSaga } from 'millrace/reactors';
 * import { z } from 'zod';
 *
 * const asked = defineEvent('question.asked.v1', z.object({ id: z.string() }));
 * const reminder = saga({
 *   bc: 'help',
 *   name: 'reminder',
 *   version: 1,
 *   from: 'now',
 *   events: [asked],
 *   startOn: ['question.asked.v1'],
 *   correlateBy: ({ payload }) => payload.id,
 *   initial: {},
 *   on: { 'question.asked.v1': () => [{ timer: 'tomorrow', afterMs: 86_400_000 }] },
 *   steps: {},
 *   timers: { tomorrow: () => [{ end: 'completed' }] },
 * });
 *
 * await using store = memoryEventStore();
 * await using runner = await startSaga(store, reminder, {
 *   send: async ({ command }) => console.log(command.type),
 * });
 * await runner.subscription.whenCaughtUp();
 */
export async function startSaga(
  store: EventStore & Partial<SubscriptionHost> & Partial<SagaHost>,
  saga: Saga,
  options: SagaOptions,
): Promise<SagaRunner> {
  const runner = createSagaRunner(store, saga, options);
  await runner.start();
  return runner;
}
