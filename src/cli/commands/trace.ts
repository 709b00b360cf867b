// `millrace trace`: everything that one request caused, as a tree.

import { systemClock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { SubscriptionHost } from '../../subscriptions/subscription-storage.ts';
import type { TraceHost } from '../../traces/trace-index.ts';
import { defineCommand, type CommandContext } from '../command.ts';
import { jsonOption, option, tenantOption, nonNegativeInteger } from '../options.ts';
import { openExistingStore, openOutbox, outboxOption, outboxUrl } from '../stores.ts';
import { traceText } from './trace-text.ts';

type Host = EventStore & Partial<SubscriptionHost & TraceHost>;

export const traceCommand = defineCommand({
  name: 'trace',
  summary: 'shows the commands, events, handlers, deliveries and jobs of one flow as a tree',
  usage: '<correlationId>',
  options: {
    ...outboxOption,
    ...tenantOption,
    wait: option('ms', 'maximum wait for the trace index to catch up (default: 2000)'),
    ...jsonOption,
  },
  examples: ['millrace trace order-4711', 'millrace trace order-4711 --json'],
  argument: 'correlation id',
  async run(context) {
    const { values, argument: correlationId, paint, signal } = context;
    const waitMs = nonNegativeInteger('wait', values.wait);
    await using opened = new AsyncDisposableStack();
    const store: Host = opened.use(await openExistingStore(context, values.store));
    // If the store has no trace index, the database of the outbox has one.
    const side: Host =
      store.traces === undefined
        ? opened.use(await openExistingStore(context, outboxUrl(context, undefined)))
        : store;
    const { subscriptions: storage, traces } = side;
    if (storage === undefined || traces === undefined) {
      throw new MillraceError('NOT_SUPPORTED', 'this store does not keep traces', {
        details: { field: 'store' },
      });
    }
    const ledger = await openLedger(context, values.store);
    if (ledger !== undefined) opened.use(ledger);
    const { tracesOver } = await import('../../platform/platform-traces.ts');
    const { tenant } = values;
    const trace = await tracesOver({ store, storage, traces, ledger }, { clock: systemClock }).get(
      correlationId,
      { tenant, waitMs, signal },
    );
    if (trace.nodes.length === 0 && trace.missing === 0) {
      const reason = trace.complete
        ? ''
        : '; the trace index has not caught up (is the platform running?)';
      throw new MillraceError('TRACE_UNKNOWN', `unknown flow '${correlationId}'${reason}`, {
        details: { correlationId },
      });
    }
    return { document: trace, text: traceText(trace, paint) };
  },
});

/** Returns undefined if no outbox is configured and none exists; the trace then has no deliveries. */
async function openLedger(
  context: CommandContext,
  store: string | undefined,
): Promise<OutboxLedger | undefined> {
  const isNamed = (context.env['MILLRACE_OUTBOX'] ?? '') !== '';
  try {
    return await openOutbox(context, isNamed ? undefined : store);
  } catch (error) {
    if (!isNamed && hasCode(error, 'CONFIG_INVALID')) return undefined;
    throw error;
  }
}
