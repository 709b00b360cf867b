// `millrace trace`: what came of one request, as a tree.

import { systemClock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import type { OutboxLedger } from '../outbox/outbox-ledger.ts';
import type { EventStore } from '../store/event-store.ts';
import type { SubscriptionHost } from '../subscriptions/subscription-storage.ts';
import type { TraceHost } from '../traces/trace-index.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { openOutbox } from './open-outbox.ts';
import { wholeNumber } from './option-values.ts';
import {
  jsonOption,
  openExistingStore,
  outboxSections,
  outboxUrl,
  storeOption,
} from './store-option.ts';
import { traceText } from './trace-text.ts';

const name = 'trace';
const options = {
  ...storeOption,
  tenant: { type: 'string', value: 'key', summary: 'only of this tenant' },
  wait: { type: 'string', value: 'ms', summary: 'for the index to catch up (2000)' },
  ...jsonOption,
} as const;

type Host = EventStore & Partial<SubscriptionHost & TraceHost>;

export const traceCommand: Command = {
  name,
  summary: 'shows the commands, events, handlers, deliveries and jobs of one flow as a tree',
  usage: `${name} <correlationId>`,
  options,
  examples: [`millrace ${name} order-4711`, `millrace ${name} order-4711 --json`],
  sections: outboxSections,
  async run(context) {
    const { stdout, paint, signal } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const [correlationId, ...rest] = positionals;
    if (correlationId === undefined || correlationId === '' || rest.length > 0) {
      throw usage(`${name} takes one correlation id`);
    }
    const waitMs = values.wait === undefined ? undefined : wholeNumber('wait', values.wait);
    await using opened = new AsyncDisposableStack();
    const store: Host = opened.use(await openExistingStore(context, values.store));
    // A store without room has it beside the outbox.
    const side: Host =
      store.traces === undefined
        ? opened.use(await openExistingStore(context, outboxUrl(context, undefined)))
        : store;
    const { subscriptions: storage, traces } = side;
    if (storage === undefined || traces === undefined) {
      throw new MillraceError('NOT_SUPPORTED', 'this store keeps no traces', {
        details: { field: 'store' },
      });
    }
    const ledger = await ledgerOf(context, values.store);
    if (ledger !== undefined) opened.use(ledger);
    const { tracesOver } = await import('../platform/platform-traces.ts');
    const { tenant } = values;
    const trace = await tracesOver({ store, storage, traces, ledger }, { clock: systemClock }).get(
      correlationId,
      { tenant, waitMs, signal },
    );
    if (trace.nodes.length === 0 && trace.missing === 0) {
      const why = trace.complete ? '' : '; the index of traces is behind (does the platform run?)';
      throw new MillraceError('TRACE_UNKNOWN', `nothing is known of '${correlationId}'${why}`, {
        details: { correlationId },
      });
    }
    stdout.write(
      values.json === true ? `${JSON.stringify(trace, null, 2)}\n` : traceText(trace, paint),
    );
    return exitCodes.ok;
  },
};

/** Where nobody says that there is one, there may be none: then nothing leaves. */
async function ledgerOf(
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
