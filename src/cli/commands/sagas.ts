// `millrace sagas …`: lists and shows sagas, and resumes parked ones.

import type { SagaEntry, SagaIndex, SagaInfo } from '../../reactors/index.ts';
import { sagaStatuses } from '../../reactors/saga-index.ts';
import { audited, byOption, operatorName } from '../audit.ts';
import { defineCommand, type Command, type CommandContext } from '../command.ts';
import { defined, flag, oneOf, option, nonNegativeInteger } from '../options.ts';
import { openExistingRoles, storeOption } from '../stores.ts';
import { fieldLines } from '../terminal/text.ts';

const oneSaga = "saga's stream, such as shop.fulfilment.v1-core-o1";
const statusOf = oneOf(sagaStatuses);

const list = defineCommand({
  name: 'sagas list',
  summary: 'lists sagas and their status',
  usage: '[--saga <category>] [--status <status>] [--tenant <tenant>]',
  options: {
    ...storeOption,
    index: option('url', 'index of sagas, if it is not in the event store'),
    saga: option('category', 'only of this saga: shop.fulfilment.v1'),
    status: option('status', `only ${sagaStatuses.join(', ')}`),
    tenant: option('tenant', 'only of this tenant'),
    limit: option('count', 'page size (default: 100)'),
    after: option('stream', 'last stream of the previous page'),
  },
  examples: [
    'millrace sagas list --status parked',
    'millrace sagas list --index redis://localhost:6379 --saga shop.fulfilment.v1',
  ],
  async run(context) {
    const { values } = context;
    const { saga, tenant, after } = values;
    const status = statusOf('status', values.status);
    const limit = nonNegativeInteger('limit', values.limit ?? '100');
    await using opened = new AsyncDisposableStack();
    const index = await openIndex(context, values, opened);
    // Read one extra saga to detect a next page.
    const found = await index.list({
      saga,
      status,
      tenant,
      after,
      limit: limit + 1,
    });
    const items = found.slice(0, limit);
    return {
      items,
      text: items.map(entryText).join(''),
      next: found.length > limit ? items.at(-1)?.stream : undefined,
    };
  },
});

const show = defineCommand({
  name: 'sagas show',
  summary: 'shows a saga: its steps, timers, data, and why it is parked',
  usage: '<stream>',
  options: storeOption,
  examples: ['millrace sagas show shop.fulfilment.v1-core-o1'],
  argument: oneSaga,
  async run(context) {
    await using engines = await openExistingRoles(context, context.values.store);
    const roles = { store: await engines.open('store'), sagas: await engines.open('sagas') };
    const { sagaAt } = await import('../../reactors/saga-admin.ts');
    const { sagas, address } = await sagaAt(roles, context.argument);
    const info = await sagas.get(address);
    return { json: info, text: infoText(info) };
  },
});

const resume = defineCommand({
  name: 'sagas resume',
  summary: 'resumes a parked saga: retries the step that failed, or skips it',
  usage: '<stream> [--skip] [--note <text>]',
  options: {
    ...storeOption,
    skip: flag('skips the failed step, which was done by hand'),
    ...byOption,
    note: option('text', 'reason, stored in the saga'),
  },
  examples: [
    'millrace sagas resume shop.fulfilment.v1-core-o1',
    'millrace sagas resume shop.fulfilment.v1-core-o1 --skip --note "refunded by hand"',
  ],
  argument: oneSaga,
  async run(context) {
    const { values, argument: stream, paint } = context;
    const { by = operatorName(context), note } = values;
    const how = values.skip === true ? 'skip' : 'resume';
    await using engines = await openExistingRoles(context, values.store);
    const store = await engines.open('store');
    const { sagaAt } = await import('../../reactors/saga-admin.ts');
    const roles = { store, sagas: await engines.open('sagas') };
    const { sagas, address } = await sagaAt(roles, stream);
    await audited(context, { store, action: `saga.${how}`, target: stream }, () =>
      sagas[how](address, { by, ...defined({ note }) }),
    );
    const done = paint.green(how === 'skip' ? 'skipped' : 'resumed');
    return { json: { stream, how }, text: `${done} ${stream}` };
  },
});

export const sagaCommands: readonly Command[] = [list, show, resume];

async function openIndex(
  context: CommandContext,
  { store: url, index }: { readonly store?: string; readonly index?: string },
  opened: AsyncDisposableStack,
): Promise<SagaIndex> {
  if (index === undefined || !/^redis/i.test(index)) {
    return opened.use(await openExistingRoles(context, index ?? url)).open('sagas');
  }
  const { openRole } = await import('../../platform/engines/open-engines.ts');
  return opened.use(await openRole(index, 'sagas'));
}

function entryText({ stream, status, updatedAtMs, dueAtMs, reason }: SagaEntry): string {
  const due = dueAtMs === undefined ? '' : `  due ${new Date(dueAtMs).toISOString()}`;
  const why = reason === undefined ? '' : `  ${reason}`;
  return `${status.padEnd(12)}  ${new Date(updatedAtMs).toISOString()}  ${stream}${due}${why}\n`;
}

function infoText(info: SagaInfo): string {
  const { parked, queuedEvents } = info;
  const steps = info.steps.map(
    ({ step, status, reason }) =>
      ['step', `${step} ${status}${reason === undefined ? '' : ` (${reason})`}`] as const,
  );
  const fields = [
    ['saga', info.stream],
    ['status', info.status],
    ['reason', info.reason],
    ['parked at', parked === undefined ? undefined : parkedText(parked, info)],
    ['started', info.startedAt],
    ['updated', info.updatedAt],
    ['correlation', info.correlationId],
    ['data', JSON.stringify(info.data)],
    ...steps,
    ...info.timers.map(({ timer, dueAt }) => ['timer', `${timer} at ${dueAt}`] as const),
    ['queued events', queuedEvents === 0 ? undefined : queuedEvents],
  ] as const;
  return fieldLines(fields, { width: 18 });
}

function parkedText(parked: NonNullable<SagaInfo['parked']>, { steps }: SagaInfo): string {
  const { reason, message } = parked;
  const failedAt =
    'n' in parked
      ? `${parked.at} of ${steps[parked.n]?.step}`
      : parked.at === 'timer'
        ? `timer ${parked.timer}`
        : `event ${parked.eventId}`;
  return `${failedAt}: ${reason}${message === undefined ? '' : ` (${message})`}`;
}
