// `millrace sagas …`: lists and shows sagas, and resumes parked ones.

import { MillraceError } from '../../foundation/error.ts';
import type { SagaEntry, SagaHost, SagaIndex, SagaInfo } from '../../reactors/index.ts';
import { sagaStatuses } from '../../reactors/saga-index.ts';
import type { EventStore } from '../../store/event-store.ts';
import { audited, byOption, operatorName } from '../audit.ts';
import {
  defineCommand,
  exitCodes,
  noArguments,
  oneArgument,
  printResult,
  type Command,
  type CommandContext,
} from '../command.ts';
import { defined, jsonOption, oneOf, wholeNumber } from '../options.ts';
import { openExistingStore, storeOption, storeSections } from '../stores.ts';
import { fieldLines } from '../terminal/text.ts';

const oneSaga = "saga's stream, such as shop.fulfilment.v1-core-o1";

const list = defineCommand({
  name: 'sagas list',
  summary: 'lists sagas and their status',
  usage: 'sagas list [--saga <category>] [--status <status>] [--tenant <tenant>]',
  options: {
    ...storeOption,
    index: {
      type: 'string',
      value: 'url',
      summary: 'index of sagas, if it is not in the event store',
    },
    saga: { type: 'string', value: 'category', summary: 'only of this saga: shop.fulfilment.v1' },
    status: { type: 'string', value: 'status', summary: `only ${sagaStatuses.join(', ')}` },
    tenant: { type: 'string', value: 'tenant', summary: 'only of this tenant' },
    limit: { type: 'string', value: 'count', summary: 'page size (default: 100)' },
    after: { type: 'string', value: 'stream', summary: 'last stream of the previous page' },
    ...jsonOption,
  },
  examples: [
    'millrace sagas list --status parked',
    'millrace sagas list --index redis://localhost:6379 --saga shop.fulfilment.v1',
  ],
  sections: storeSections,
  async run(context, input) {
    const { stdout, stderr } = context;
    const { values } = input;
    noArguments(input);
    const { saga, tenant, after } = values;
    const status =
      values.status === undefined ? undefined : oneOf('status', sagaStatuses, values.status);
    const limit = wholeNumber('limit', values.limit ?? '100');
    await using opened = new AsyncDisposableStack();
    const index = await openIndex(context, values, opened);
    // One more than the page shows whether there is a next page.
    const found = await index.list({
      ...defined({ saga, status, tenant, after }),
      limit: limit + 1,
    });
    const page = found.slice(0, limit);
    for (const entry of page) {
      stdout.write(values.json === true ? `${JSON.stringify(entry)}\n` : entryText(entry));
    }
    const last = page.at(-1);
    if (found.length > limit && last !== undefined && values.json !== true) {
      stderr.write(`next page: --after ${last.stream}\n`);
    }
    return exitCodes.ok;
  },
});

const show = defineCommand({
  name: 'sagas show',
  summary: 'shows a saga: its steps, timers, data, and why it is parked',
  usage: 'sagas show <stream>',
  options: { ...storeOption, ...jsonOption },
  examples: ['millrace sagas show shop.fulfilment.v1-core-o1'],
  sections: storeSections,
  async run(context, input) {
    const { values } = input;
    const stream = oneArgument(input, oneSaga);
    await using store = await openExistingStore(context, values.store);
    const { sagaAt } = await import('../../reactors/saga-admin.ts');
    const { sagas, address } = await sagaAt(sagaHost(store), stream);
    const info = await sagas.get(address);
    return printResult(context, values, { json: info, text: infoText(info).trimEnd() });
  },
});

const resume = defineCommand({
  name: 'sagas resume',
  summary: 'resumes a parked saga: retries the step that failed, or skips it',
  usage: 'sagas resume <stream> [--skip] [--note <text>]',
  options: {
    ...storeOption,
    skip: { type: 'boolean', summary: 'skips the failed step, which was done by hand' },
    ...byOption,
    note: { type: 'string', value: 'text', summary: 'reason, stored in the saga' },
    ...jsonOption,
  },
  examples: [
    'millrace sagas resume shop.fulfilment.v1-core-o1',
    'millrace sagas resume shop.fulfilment.v1-core-o1 --skip --note "refunded by hand"',
  ],
  sections: storeSections,
  async run(context, input) {
    const { values } = input;
    const stream = oneArgument(input, oneSaga);
    const { by = operatorName(context), note } = values;
    const how = values.skip === true ? 'skip' : 'resume';
    await using store = await openExistingStore(context, values.store);
    const { sagaAt } = await import('../../reactors/saga-admin.ts');
    const { sagas, address } = await sagaAt(sagaHost(store), stream);
    await audited(context, { store, action: `saga.${how}`, target: stream }, () =>
      sagas[how](address, { by, ...defined({ note }) }),
    );
    return printResult(context, values, {
      json: { stream, how },
      text: `${context.paint.green(how === 'skip' ? 'skipped' : 'resumed')} ${stream}`,
    });
  },
});

export const sagaCommands: readonly Command[] = [list, show, resume];

async function openIndex(
  context: CommandContext,
  { store: url, index }: { readonly store?: string; readonly index?: string },
  opened: AsyncDisposableStack,
): Promise<SagaIndex> {
  if (index === undefined || !/^redis/i.test(index)) {
    return sagaHost(opened.use(await openExistingStore(context, index ?? url))).sagas;
  }
  const { openSagaIndex } = await import('../../platform/engines/open-saga-index.ts');
  return opened.use(await openSagaIndex(index));
}

function sagaHost(store: EventStore & Partial<SagaHost>): EventStore & SagaHost {
  const { sagas } = store;
  if (sagas !== undefined) return Object.assign(store, { sagas });
  throw new MillraceError('NOT_SUPPORTED', 'this store has no index of sagas');
}

function entryText({ stream, status, updatedAtMs, dueAtMs, reason }: SagaEntry): string {
  const due = dueAtMs === undefined ? '' : `  due ${new Date(dueAtMs).toISOString()}`;
  const why = reason === undefined ? '' : `  ${reason}`;
  return `${status.padEnd(12)}  ${new Date(updatedAtMs).toISOString()}  ${stream}${due}${why}\n`;
}

function infoText(info: SagaInfo): string {
  const { parked, held } = info;
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
    ['queued events', held === 0 ? undefined : held],
  ] as const;
  return fieldLines(fields, { width: 18 });
}

function parkedText(parked: NonNullable<SagaInfo['parked']>, { steps }: SagaInfo): string {
  const { reason, message } = parked;
  const place =
    'n' in parked
      ? `${parked.at} of ${steps[parked.n]?.step}`
      : parked.at === 'timer'
        ? `timer ${parked.timer}`
        : `event ${parked.eventId}`;
  return `${place}: ${reason}${message === undefined ? '' : ` (${message})`}`;
}
