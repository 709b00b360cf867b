// `millrace trace`: everything that one request caused, as a tree.

import { systemClock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import type { EngineSet } from '../../platform/engines/open-engines.ts';
import type { OutboxLedger } from '../../outbox/outbox-ledger.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { TraceSources } from '../../traces/create-traces.ts';
import { defineCommand, type CommandContext } from '../command.ts';
import { option, tenantOption, nonNegativeInteger } from '../options.ts';
import { openExistingRoles, openOutbox, outboxOption } from '../stores.ts';
import { traceText } from './trace-text.ts';

export const traceCommand = defineCommand({
  name: 'trace',
  summary: 'shows the commands, events, handlers, deliveries, jobs and sagas of one flow as a tree',
  usage: '<correlationId>',
  options: {
    ...outboxOption,
    ...tenantOption,
    wait: option('ms', 'maximum wait for the trace index to catch up (default: 2000)'),
  },
  examples: ['millrace trace order-4711', 'millrace trace order-4711 --json'],
  argument: 'correlation id',
  async run(context) {
    const { values, argument: correlationId, paint, signal } = context;
    const waitMs = nonNegativeInteger('wait', values.wait);
    await using opened = new AsyncDisposableStack();
    const engines = opened.use(await openExistingRoles(context, values.store));
    const roles = {
      store: await engines.open('store'),
      subscriptions: await engines.open('subscriptions'),
      traces: await engines.open('traces'),
    };
    const outbox = await openLedger(context, values.store);
    if (outbox !== undefined) opened.use(outbox);
    const { tracesOver } = await import('../../platform/platform-traces.ts');
    const { tenant } = values;
    const traces = tracesOver(
      { ...roles, outbox },
      { clock: systemClock, workOf: await workOver(engines, roles.store, opened) },
    );
    const trace = await traces.get(correlationId, { tenant, waitMs, signal });
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

/** Jobs, and messages of topics. Those of a database that does not exist are missing. */
async function workOver(
  engines: EngineSet,
  store: EventStore,
  opened: AsyncDisposableStack,
): Promise<TraceSources['workOf']> {
  const { createTasks } = await import('../../tasks/create-tasks.ts');
  const { tracedWorkOf } = await import('../../platform/traced-work.ts');
  const { personalData } = store;
  return tracedWorkOf({
    clock: systemClock,
    engines: {
      bus: () => engines.open('bus'),
      has: (role) => engines.has(role),
      sagas: await engines.open('sagas'),
      store,
    },
    tasks: async () =>
      opened.use(createTasks(await engines.open('tasks'), { types: [], personalData })),
  });
}

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
