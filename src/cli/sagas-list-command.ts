// `millrace sagas list`: where sagas are, the parked ones before all.

import type { SagaEntry, SagaIndex, SagaStatus } from '../reactors/index.ts';
import { sagaStatuses as statuses } from '../reactors/saga-index.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { wholeNumber } from './option-values.ts';
import { sagaHost } from './saga-argument.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = {
  ...storeOption,
  index: {
    type: 'string',
    value: 'url',
    summary: 'where the sagas’ index is, if not in the store',
  },
  saga: { type: 'string', value: 'category', summary: 'of this saga: shop.fulfilment.v1' },
  status: { type: 'string', value: 'status', summary: `only these: ${statuses.join(', ')}` },
  tenant: { type: 'string', value: 'tenant', summary: 'of this tenant' },
  limit: { type: 'string', value: 'count', summary: 'at most so many (100)' },
  after: { type: 'string', value: 'stream', summary: 'those behind this stream: the next page' },
  ...jsonOption,
} as const;

export const sagasListCommand: Command = {
  name: 'sagas list',
  summary: 'lists sagas by their status',
  usage: 'sagas list [--saga <category>] [--status <status>] [--tenant <tenant>]',
  options,
  examples: [
    'millrace sagas list --status parked',
    'millrace sagas list --index redis://localhost:6379 --saga shop.fulfilment.v1',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, stderr } = context;
    const { values, positionals } = readArgs({ name: 'sagas list', args: context.args }, options);
    if (positionals.length > 0) throw usage('sagas list takes options only');
    const { saga, tenant, after } = values;
    const status = statusOf(values.status);
    const limit = wholeNumber('limit', values.limit ?? '100');
    await using opened = new AsyncDisposableStack();
    const index = await openIndex(context, values, opened);
    const found = await index.list({
      ...(saga === undefined ? {} : { saga }),
      ...(status === undefined ? {} : { status }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(after === undefined ? {} : { after }),
      limit: limit + 1,
    });
    const page = found.slice(0, limit);
    for (const entry of page) {
      stdout.write(values.json === true ? `${JSON.stringify(entry)}\n` : entryText(entry));
    }
    const last = page.at(-1);
    if (found.length > limit && last !== undefined && values.json !== true) {
      stderr.write(`there are more: --after ${last.stream}\n`);
    }
    return exitCodes.ok;
  },
};

async function openIndex(
  context: CommandContext,
  { store: url, index }: { readonly store?: string; readonly index?: string },
  opened: AsyncDisposableStack,
): Promise<SagaIndex> {
  if (index === undefined || !/^redis/i.test(index)) {
    return sagaHost(opened.use(await openExistingStore(context, index ?? url))).sagas;
  }
  const { openSagaIndex } = await import('../platform/engines/open-saga-index.ts');
  return opened.use(await openSagaIndex(index));
}

function statusOf(text: string | undefined): SagaStatus | undefined {
  if (text === undefined) return undefined;
  const status = statuses.find((each) => each === text);
  if (status === undefined) throw usage(`--status takes ${statuses.join(', ')}, not '${text}'`);
  return status;
}

function entryText({ stream, status, updatedAtMs, dueAtMs, reason }: SagaEntry): string {
  const due = dueAtMs === undefined ? '' : `  due ${new Date(dueAtMs).toISOString()}`;
  const why = reason === undefined ? '' : `  ${reason}`;
  return `${status.padEnd(12)}  ${new Date(updatedAtMs).toISOString()}  ${stream}${due}${why}\n`;
}
