// Runs the outbox without a platform, for `millrace outbox run` and programs that only send: store, ledger, projectors,
// destinations and sender. `createPlatform` starts these parts itself.

import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { createOutboxDispatcher } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import { createOutboxMetrics } from '../outbox/outbox-metrics.ts';
import { startOutboxProjector } from '../outbox/outbox-projector.ts';
import type { EventStore } from '../store/event-store.ts';
import type { SubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import type { OutboxDefinition, OutboxSender } from './define-outbox.ts';
import { openEventStore } from './engines/open-event-store.ts';
import { openOutboxLedger } from './engines/open-outbox-ledger.ts';
import type { OutboxSettings } from './config/outbox-environment.ts';
import { sendingBy, withSettings } from './outbox-settings.ts';
import { isSameDatabase } from './engines/store-url.ts';

export interface StartOutboxOptions {
  readonly settings: OutboxSettings;
  /** The URL of the event store. */
  readonly store: string;
  /** The URL of the ledger. Default: the store's. */
  readonly outbox?: string | undefined;
  readonly observer?: Observer | undefined;
}

export interface RunningOutbox extends AsyncDisposable {
  readonly ledger: OutboxLedger;
  /** Resolves when all events are projected and no message is due. */
  whenDrained(signal?: AbortSignal): Promise<void>;
}

/**
 * Runs the outbox of a definition until it is disposed. Then projectors stop first, running attempts end, and the
 * other claimed messages are released.
 *
 * @example
 * import { readOutboxEnvironment, startOutbox } from 'millrace/platform';
 *
 * await using outbox = await startOutbox(
 *   { destinations: { audit: async (message) => console.log(message.eventType) } },
 *   { settings: readOutboxEnvironment(process.env), store: 'sqlite:.millrace/events.db' },
 * );
 * await outbox.whenDrained();
 */
export async function startOutbox(
  definition: OutboxDefinition,
  options: StartOutboxOptions,
): Promise<RunningOutbox> {
  const { settings, store: storeUrl, outbox: outboxUrl = storeUrl } = options;
  const observer: Observer = { ...options.observer, ...definition.observer };
  const { projectors = [], destinations, sender = createOutboxDispatcher } = definition;
  await using stack = new AsyncDisposableStack();
  for (const each of Object.values(destinations)) {
    const destination = typeof each === 'function' ? each : each.send;
    if (Symbol.asyncDispose in destination) stack.use(destination as unknown as AsyncDisposable);
  }
  const send = sendingBy(settings, destinations);
  const ledger = stack.use(await openOutboxLedger(outboxUrl, { observer }));
  const sending: OutboxSender = stack.use(
    sender({ ...send({ ledger, observer }).options, ...definition.dispatcher }, settings),
  );
  await sending.start();
  await stack.use(createOutboxMetrics({ ledger, observer })).start();

  const runners: SubscriptionRunner[] = [];
  if (projectors.length > 0) {
    const store = stack.use(await openEventStore(storeUrl));
    const { host, url } = await hostOf(store, storeUrl, outboxUrl, stack);
    for (const each of projectors) {
      const runner = await startOutboxProjector(store, withSettings(each, settings), {
        ledger,
        observer,
        storage: host.subscriptions,
        sharesDatabase: isSameDatabase(url, outboxUrl),
      });
      runners.push(stack.use(runner));
    }
  }
  const running = stack.move();
  return {
    ledger,
    async whenDrained(signal) {
      if (sending.whenIdle === undefined) {
        throw new MillraceError('NOT_SUPPORTED', 'this sender has no whenIdle');
      }
      await Promise.all(runners.map((runner) => runner.whenCaughtUp(signal)));
      await sending.whenIdle(signal);
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

/** The checkpoints are in the outbox's database if the store cannot store them. */
async function hostOf(
  store: EventStore & Partial<SubscriptionHost>,
  storeUrl: string,
  outboxUrl: string,
  stack: AsyncDisposableStack,
): Promise<{ readonly host: SubscriptionHost; readonly url: string }> {
  const { subscriptions } = store;
  if (subscriptions !== undefined) return { host: { subscriptions }, url: storeUrl };
  const side: EventStore & Partial<SubscriptionHost> = stack.use(await openEventStore(outboxUrl));
  if (side.subscriptions !== undefined) {
    return { host: { subscriptions: side.subscriptions }, url: outboxUrl };
  }
  throw new MillraceError(
    'NOT_SUPPORTED',
    'neither the store nor the outbox can store checkpoints',
    {
      details: { field: 'outbox' },
    },
  );
}
