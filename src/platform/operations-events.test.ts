import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Bus } from '../bus/bus.ts';
import type { NewMessage } from '../bus/bus-message.ts';
import { openMemory } from '../engines/memory/index.ts';
import { MillraceError } from '../foundation/error.ts';
import { Snooze } from '../foundation/handler-outcome.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createAuditLog } from './audit-log.ts';
import { createModuleContext } from './modules/platform-module.ts';
import { createOperationsEvents } from './operations-events.ts';

/** A bus that stores messages while it is available. */
function fakeBus(): { readonly bus: Bus; readonly messages: NewMessage[]; isAvailable: boolean } {
  const messages: NewMessage[] = [];
  const publishMany = async (sent: readonly NewMessage[]): Promise<readonly []> => {
    if (!fake.isAvailable) throw new MillraceError('BUS_UNAVAILABLE', 'the bus is unavailable');
    messages.push(...sent);
    return [];
  };
  const bus = { publishMany, publish: (sent: NewMessage) => publishMany([sent]) } as unknown as Bus;
  const fake = { bus, messages, isAvailable: true };
  return fake;
}

const failedRequest = { method: 'GET', route: '/x', status: 500 } as const;

test('a flood of errors is limited, and a later message has the number of omitted ones', async () => {
  const clock = fakeClock();
  const { bus, messages } = fakeBus();
  const operations = createOperationsEvents({}, clock);
  await using _ = await operations.start(bus, {});
  const report = (): void =>
    operations.observer.record?.('http_request_duration_seconds', 1, failedRequest);
  for (let n = 0; n < 200; n += 1) report();
  assert.equal(messages.length, 100);
  await clock.advance(10_000);
  report();
  assert.deepEqual(messages.at(-1)?.payload, {
    ...failedRequest,
    requestId: undefined,
    omitted: 101,
  });
});

test('without a bus, errors are logged as before and do not fail', async () => {
  const logged: string[] = [];
  const write = (_: object, message: string): void => void logged.push(message);
  const log = { debug: write, info: write, warn: write, error: write };
  const operations = createOperationsEvents({ log }, fakeClock());
  operations.observer.log?.error({}, 'before the start');
  const fake = fakeBus();
  fake.isAvailable = false;
  {
    await using _ = await operations.start(fake.bus, {});
  }
  operations.observer.log?.error({}, 'after the stop');
  assert.deepEqual(logged, [
    'before the start',
    'operations event not published',
    'operations event not published',
    'after the stop',
  ]);
  assert.deepEqual(fake.messages, []);
});

test('an admin action waits while the bus is unavailable, and is then published once per phase', async () => {
  await using db = openMemory();
  const clock = fakeClock();
  const fake = fakeBus();
  const { module } = createOperationsEvents({}, clock);
  const { context } = createModuleContext({ clock, observer: {} });
  const { subscriptions } = module;
  assert.ok(typeof subscriptions === 'function');
  const [audit] = subscriptions({ ...context, bus: async () => fake.bus });
  const actor = { kind: 'token', name: 'ada', tenant: 'acme', address: '10.0.0.1' };
  await createAuditLog(db.store).run({ action: 'a.b', target: 'bob', actor }, async () => 0);
  const events = await db.store.readAll({ filter: audit?.filter ?? {} }).toArray();
  const handle = async (): Promise<void> => {
    for (const event of events) await audit?.handler?.(event, undefined as never);
  };
  fake.isAvailable = false;
  await assert.rejects(handle(), (error) => error instanceof Snooze);
  fake.isAvailable = true;
  await handle();
  assert.deepEqual(
    fake.messages.map(({ id, subject, tenant, payload }) => [id, subject, tenant, payload]),
    [
      [
        events[0]?.eventId,
        'gbe.events.audit.change',
        'acme',
        {
          auditId: events[0]?.eventId,
          outcome: 'requested',
          action: 'a.b',
          actorKind: 'token',
          requestId: undefined,
        },
      ],
      [
        events[1]?.eventId,
        'gbe.events.audit.change',
        undefined,
        { auditId: events[0]?.eventId, outcome: 'done', error: undefined },
      ],
    ],
  );
});
