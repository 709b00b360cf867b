// `millrace sagas show`: one saga, from its own stream: steps, timers, what it knows, why it waits.

import type { SagaInfo } from '../reactors/index.ts';
import { exitCodes, readArgs, type Command } from './command.ts';
import { sagaArgument, sagaHost } from './saga-argument.ts';
import { jsonOption, openExistingStore, storeOption, storeSections } from './store-option.ts';

const options = { ...storeOption, ...jsonOption } as const;

export const sagasShowCommand: Command = {
  name: 'sagas show',
  summary: 'shows where a saga is: its steps, its timers, why it is parked',
  usage: 'sagas show <stream>',
  options,
  examples: ['millrace sagas show shop.fulfilment.v1-core-o1'],
  sections: storeSections,
  async run(context) {
    const { stdout } = context;
    const { values, positionals } = readArgs({ name: 'sagas show', args: context.args }, options);
    const stream = sagaArgument('sagas show', positionals);
    await using store = await openExistingStore(context, values.store);
    const { sagaAt } = await import('../reactors/saga-at.ts');
    const { sagas, address } = await sagaAt(sagaHost(store), stream);
    const info = await sagas.get(address);
    stdout.write(values.json === true ? `${JSON.stringify(info)}\n` : infoText(info));
    return exitCodes.ok;
  },
};

function infoText(info: SagaInfo): string {
  const { parked, timers, held } = info;
  const rows: (readonly [string, string | undefined])[] = [
    ['saga', info.stream],
    ['status', info.status],
    ['reason', info.reason],
    ['parked at', parked === undefined ? undefined : parkedText(parked, info)],
    ['started', info.startedAt],
    ['updated', info.updatedAt],
    ['correlation', info.correlationId],
    ['data', JSON.stringify(info.data)],
    ...info.steps.map(
      ({ step, status, reason }) =>
        ['step', `${step} ${status}${reason === undefined ? '' : ` (${reason})`}`] as const,
    ),
    ...timers.map(({ timer, dueAt }) => ['timer', `${timer} at ${dueAt}`] as const),
    ['events that wait', held === 0 ? undefined : String(held)],
  ];
  return rows
    .filter((row): row is readonly [string, string] => row[1] !== undefined)
    .map(([name, value]) => `${name.padEnd(18)}${value}\n`)
    .join('');
}

function parkedText(parked: NonNullable<SagaInfo['parked']>, { steps }: SagaInfo): string {
  const { reason, message } = parked;
  const what =
    'n' in parked
      ? `${parked.at} of ${steps[parked.n]?.step}`
      : parked.at === 'timer'
        ? `timer ${parked.timer}`
        : `event ${parked.eventId}`;
  return `${what}: ${reason}${message === undefined ? '' : ` (${message})`}`;
}
