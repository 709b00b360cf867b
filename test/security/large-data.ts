// A module and its data: of each kind that can be large, items almost as large as they may be.

import { z } from 'zod';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { defineModule, type Platform, type PlatformModule } from '../../src/platform/index.ts';
import { projection, readModel } from '../../src/projections/index.ts';
import { saga } from '../../src/reactors/index.ts';
import { subscription, Terminal } from '../../src/subscriptions/index.ts';
import { task, taskType } from '../../src/tasks/index.ts';
import { newEvent, newStream } from '../../src/testing/conformance/store/fixture.ts';
import { eventually } from '../../src/testing/assertions.ts';

const order = z.object({ key: z.string(), text: z.string() });
const broken = defineEvent('order.broken.v1', order);
const runCheck = defineCommand('check.run', z.object({}));
const checks = defineAggregate({
  bc: 'shop',
  name: 'check',
  version: 1,
  events: [],
  commands: [runCheck],
  initial: 0,
  evolve: {},
  decide: { 'check.run': () => [] },
});
const busGroup = { group: 'broken', subject: 'shop.orders.broken' } as const;

export const largeTypes = [
  taskType('report-gen', { stepTimeoutMs: 300_000 }),
  taskType('report-fail', { retries: 0 }),
];

/** The document and the saga of an order are as large as its event, which is dead-lettered. */
export const largeModule: PlatformModule = defineModule({
  name: 'shop',
  aggregates: [checks],
  subscriptions: [
    subscription({
      name: 'sub:shop:broken:v1',
      filter: { types: [broken.type] },
      onDeadLetter: 'park',
      handler: () => {
        // The largest error that is stored.
        throw new Terminal(`broken ${'x'.repeat(5_000)}`);
      },
    }),
  ],
  projections: [
    projection({
      name: 'sub:shop:orders:v1',
      readModel: readModel<z.infer<typeof order>>({
        bc: 'shop',
        aggregate: 'order',
        version: 1,
        indexes: { key: ({ key }) => key },
        sets: { open: () => true },
        ranges: { at: () => 1 },
      }),
      on: {
        'order.broken.v1': (
          _before: unknown,
          { payload }: { readonly payload: z.infer<typeof order> },
        ) => payload,
      },
    }),
  ],
  sagas: [
    saga({
      bc: 'shop',
      name: 'repair',
      version: 1,
      from: 'start',
      events: [broken],
      startOn: ['order.broken.v1'],
      filter: { category: 'shop.order.v1' },
      correlateBy: ({ aggregate }) => aggregate.id,
      initial: { key: '', text: '' },
      on: {
        'order.broken.v1': ({ payload }) => [
          { data: payload },
          { run: 'check', id: 'main', command: runCheck({}) },
        ],
      },
      steps: {
        check: {
          onDone: () => {
            throw new Terminal('beyond repair');
          },
        },
      },
      retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 1 },
    }),
  ],
  destinations: {
    partner: () => Promise.reject(new Terminal('refused')),
  },
  tasks: [
    task('report-fail', async (context) => {
      await context.step('load', async () => context.payload);
      throw new Terminal('no report');
    }),
  ],
});

/** Ids of large items. */
export interface LargeIds {
  readonly aggregate: string;
  readonly stream: string;
  readonly flow: string;
  readonly job: string;
  readonly failedJob: string;
  readonly letter: string;
  readonly message: string;
  readonly saga: string;
}

/** Stores as many items of each kind. */
export async function storeLarge(platform: Platform, count: number): Promise<LargeIds> {
  const { engines } = platform;
  const { store, outbox, subscriptions, sagas } = engines;
  const tasks = await platform.tasks();
  const bus = engines.has('bus') ? await engines.bus() : undefined;
  let consumed = 0;
  await using failing = await bus?.consume(busGroup, () => {
    consumed += 1;
    return Promise.reject(new Terminal('no'));
  });
  const tenant = 'core';
  // In memory 2 bytes for each character, because of one of them.
  const textOf = (chars: number): string => `${'x'.repeat(chars)}\u0394`;
  const text = textOf(900_000);
  // As large as a job may be.
  const part = { text: 'x'.repeat(250_000) };
  const large = await tasks.enqueue({
    type: 'report-gen',
    payload: part,
    tenant,
    delayMs: 86_400_000,
  });
  for (let at = 0; at < 6; at += 1) {
    await tasks.sendEvent(large.id, { name: 'part', payload: part });
  }
  for (let at = 0; at < count; at += 1) {
    const stream = newStream('shop.order.v1', tenant);
    const aggregate = { bc: 'shop', type: 'order', id: stream.split('-')[2] ?? '' };
    const payload = { key: `key-${at}`, text };
    const event = newEvent({ type: broken.type, aggregate, payload });
    await store.append(stream, [event]);
    const job = { payload: { text: textOf(250_000) }, tenant };
    await tasks.enqueue({ ...job, type: 'report-gen' });
    await tasks.enqueue({ ...job, type: 'report-fail' });
    await bus?.publish({ subject: busGroup.subject, payload });
    await outbox?.enqueue({
      sourceStreamId: stream,
      sourceEventId: event.eventId,
      integrationType: 'partner:x',
      eventType: 'order.placed.v1',
      payload,
      tenantId: tenant,
    });
  }
  const { deadLetters } = subscriptions;
  const documents = platform.documents({ bc: 'shop', aggregate: 'order' });
  const isStored = async (counted: Promise<number> | undefined): Promise<boolean> =>
    counted === undefined || (await counted) >= count;
  const failed = async (): Promise<number> => {
    const counts = await tasks.counts();
    return counts.reduce((sum, { states }) => sum + states.failed, 0);
  };
  const parked = async (): Promise<number> =>
    (await sagas.list({ tenant, status: 'parked', limit: count })).length;
  await eventually('dead letters', () =>
    isStored(deadLetters.count({ tenant, status: 'pending' })),
  );
  await eventually('documents', () => isStored(documents.count(tenant, 'at')));
  await eventually('messages', () => isStored(outbox?.counts().then(({ DEAD }) => DEAD)));
  await eventually('failed jobs', () => isStored(failed()));
  await eventually('parked sagas', () => isStored(parked()));
  if (failing !== undefined) await eventually('messages of the bus', () => consumed >= count);
  await failing?.stop();

  const [letter] = await deadLetters.list({ tenant }, { limit: 1, withoutPayloads: true });
  const [message] = (await outbox?.list({}, { limit: 1 })) ?? [];
  const [parkedSaga] = await sagas.list({ tenant, status: 'parked', limit: 1 });
  const [failedJob] = (await tasks.list({ type: 'report-fail' }, { limit: 1 })).tasks;
  return {
    aggregate: letter?.aggregateId ?? '',
    stream: letter?.stream ?? '',
    flow: letter?.correlationId ?? '',
    job: large.id,
    failedJob: failedJob?.id ?? '',
    letter: letter?.id ?? '',
    message: message?.id ?? '',
    saga: parkedSaga?.stream ?? '',
  };
}
