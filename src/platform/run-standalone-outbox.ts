// Runs the outbox without a platform, for `millrace outbox run` and programs that only send: store, ledger, projectors,
// destinations and sender. `createPlatform` starts these parts itself.

import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { createOutboxDispatcher } from '../outbox/outbox-dispatcher.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import { createOutboxMetrics } from '../outbox/outbox-metrics.ts';
import { startOutboxProjector } from '../outbox/outbox-projector.ts';
import type { SubscriptionRunner } from '../subscriptions/subscription-runner.ts';
import type { SubscriptionRoles } from '../subscriptions/subscription-storage.ts';
import type { OutboxDefinition, OutboxSender } from './define-outbox.ts';
import { createEngineSet } from './engines/open-engines.ts';
import type { OutboxSettings } from './config/outbox-environment.ts';
import { contextFilter } from './modules/source-streams.ts';
import { sendingBy, withSettings } from './outbox-settings.ts';

export interface StartOutboxOptions {
  readonly settings: OutboxSettings;
  /** The URL of the event store. */
  readonly store: string;
  /** The URL of the ledger. Default: the store's. */
  readonly outbox?: string | undefined;
  readonly observer?: Observer | undefined;
  /** Refuses to keep the checkpoints or the outbox in a local file that was not configured. */
  readonly isProduction?: boolean | undefined;
}

export interface RunningOutbox extends AsyncDisposable {
  readonly ledger: OutboxLedger;
  /** What the projectors read and store; undefined without projectors. */
  readonly projecting: SubscriptionRoles | undefined;
  /** The running projectors. */
  readonly runners: readonly SubscriptionRunner[];
  /** Resolves when all events are projected and no message is due. */
  whenDrained(signal?: AbortSignal): Promise<void>;
  /** The number of events that projectors of this process dead-lettered: their messages are not in the outbox. */
  readonly deadLetteredEvents: number;
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
  const { settings, store: storeUrl } = options;
  const observer: Observer = { ...options.observer, ...definition.observer };
  const { bc, destinations, sender = createOutboxDispatcher } = definition;
  const projectors = (definition.projectors ?? []).map((each) => {
    const { filter = {}, ...projector } = withSettings(each, settings);
    return { ...projector, filter: contextFilter(filter, { name: each.name, bc }) };
  });
  let deadLetteredEvents = 0;
  const running = { observer, onAlert: () => void (deadLetteredEvents += 1) };
  await using stack = new AsyncDisposableStack();
  for (const each of Object.values(destinations)) {
    const destination = typeof each === 'function' ? each : each.send;
    if (Symbol.asyncDispose in destination) stack.use(destination as unknown as AsyncDisposable);
  }
  const { optionsFor } = sendingBy(settings, destinations, { observer });
  const needs = projectors.length > 0 ? { subscriptions: 'required' as const } : {};
  const urls = { store: storeUrl, outbox: options.outbox };
  const engines = stack.use(
    createEngineSet(
      { urls, needs: { ...needs, outbox: 'required' }, isProduction: options.isProduction },
      { observer, outboxMaxAttempts: settings.maxAttempts },
    ),
  );
  const outbox = await engines.open('outbox');
  const sendOptions = optionsFor(outbox);
  const sending: OutboxSender = stack.use(
    sender({ ...sendOptions, ...definition.dispatcher }, settings),
  );
  await sending.start();
  await stack.use(createOutboxMetrics({ ledger: outbox, observer })).start();

  const runners: SubscriptionRunner[] = [];
  let projecting: SubscriptionRoles | undefined;
  if (projectors.length > 0) {
    const [store, subscriptions] = [
      await engines.open('store'),
      await engines.open('subscriptions'),
    ];
    projecting = { store, subscriptions };
    for (const each of projectors) {
      const roles = { ...projecting, outbox };
      runners.push(stack.use(await startOutboxProjector(roles, each, running)));
    }
  }
  const opened = stack.move();
  return {
    ledger: outbox,
    projecting,
    runners,
    get deadLetteredEvents() {
      return deadLetteredEvents;
    },
    async whenDrained(signal) {
      if (sending.whenIdle === undefined) {
        throw new MillraceError('NOT_SUPPORTED', 'this sender has no whenIdle');
      }
      await Promise.all(runners.map((runner) => runner.whenCaughtUp(signal)));
      await sending.whenIdle(signal);
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}
