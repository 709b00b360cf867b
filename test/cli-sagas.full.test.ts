// `millrace sagas`: lists, shows and resumes sagas.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEnvelope, type NewEvent } from '../src/contracts/envelope.ts';
import type { SqliteEngine } from '../src/engines/sqlite/index.ts';
import {
  orderSaga,
  paid,
  placed,
  quickRetry,
} from '../src/testing/support/reactors/example-order.ts';
import { sagaAdmin, startSaga, type SagaStatus } from '../src/reactors/index.ts';
import { createReceiver } from '../src/testing/support/reactors/saga-rig.ts';
import type { EventStore } from '../src/store/event-store.ts';
import { jsonOf, useWorkspace } from './cli-store-terminal.ts';
import { until } from './store/rig.ts';

const stream = 'shop.fulfilment.v1-core-o1';
/** The long timeout keeps timers from firing on a slow machine. */
const order = orderSaga({ retry: quickRetry, paymentMs: 600_000, expiresAfterMs: 900_000 });

async function append(store: EventStore, event: NewEvent, tenant = 'core'): Promise<void> {
  const { orderId } = event.payload as { orderId: string };
  const [type = ''] = event.type.split('.');
  const envelope = createEnvelope(event, { tenant, aggregate: { bc: 'shop', type, id: orderId } });
  await store.append(`shop.${type}.v1-${tenant}-${orderId}`, [envelope]);
}

/** Runs the saga until it has this status. */
async function run(
  db: SqliteEngine,
  { refund, key, status, tenant = 'core' }: Wanted,
): Promise<readonly string[]> {
  const receiver = createReceiver();
  receiver.answer('parcel.ship', 'reject');
  receiver.answer('card.refund', refund);
  const tenants = new Set([tenant]);
  await using runner = await startSaga(db, order, { send: receiver.send, tenants });
  const admin = sagaAdmin(db, order, { tenants });
  await until(`${key} is ${status}`, async () => {
    const { items: sagas } = await admin.list({ status, tenant });
    return sagas.some((each) => each.key === key);
  });
  assert.equal(runner.state, 'started');
  return receiver.effects;
}

interface Wanted {
  readonly refund: 'accept' | 'reject';
  readonly key: string;
  readonly status: SagaStatus;
  readonly tenant?: string | undefined;
}

describe('millrace sagas', () => {
  const home = useWorkspace();
  const park = (tenant = 'core') =>
    home.fillDefault(async (store, db) => {
      await append(store, placed({ orderId: 'o1' }), tenant);
      await append(store, paid({ orderId: 'o1' }), tenant);
      await run(db, { refund: 'reject', key: 'o1', status: 'parked', tenant });
    });

  test('shows why a saga is parked, and resumes it', async () => {
    await park();
    const { code, stdout } = await home.millrace('sagas list --status parked');
    assert.equal(code, 0);
    assert.match(stdout, /^parked {8}\d{4}-.*Z {2}shop\.fulfilment\.v1-core-o1 {2}said-no\n$/);
    assert.equal((await home.millrace('sagas list --status completed')).stdout, '');

    const shown = await home.millrace(`sagas show ${stream}`);
    assert.match(shown.stdout, /^status +parked$/m);
    assert.match(shown.stdout, /^parked at +compensation of charge: said-no \(card\.refund/m);
    assert.match(shown.stdout, /^step +reserve done$/m);
    assert.match(shown.stdout, /^step +ship failed \(said-no\)$/m);
    const info = jsonOf(await home.millrace(`sagas show ${stream} --json`));
    assert.equal((info as { status: string }).status, 'parked');

    const resumed = await home.millrace(`sagas resume ${stream} --by ada --note try`);
    assert.deepEqual(resumed, { code: 0, stdout: `resumed ${stream}\n`, stderr: '' });
    const again = await home.millrace(`sagas resume ${stream}`);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /^SAGA_NOT_PARKED: saga 'o1' is not parked but compensating/);
    await home.fillDefault(async (_store, db) => {
      const wanted: Wanted = { refund: 'accept', key: 'o1', status: 'compensated' };
      assert.deepEqual(await run(db, wanted), ['card.refund o1', 'stock.release o1']);
    });
  });

  test('skips a step, also for a tenant with a hyphen', async () => {
    await park('demo-za');
    const name = 'shop.fulfilment.v1-demo-za-o1';
    const skipped = jsonOf(await home.millrace(`sagas resume ${name} --skip --json`));
    assert.deepEqual(skipped, { stream: name, how: 'skip' });
    await home.fillDefault(async (store, db) => {
      const events = await store.readStream(name).toArray();
      assert.ok(events.every(({ tenant }) => tenant === 'demo-za'));
      const wanted = { key: 'o1', status: 'compensated', tenant: 'demo-za' } as const;
      assert.deepEqual(await run(db, { refund: 'reject', ...wanted }), ['stock.release o1']);
    });
  });

  test('lists sagas page by page, as NDJSON with --json', async () => {
    await home.fillDefault(async (store, db) => {
      for (const orderId of ['a', 'b', 'c']) await append(store, placed({ orderId }));
      await run(db, { refund: 'accept', key: 'c', status: 'running' });
      await run(db, { refund: 'accept', key: 'a', status: 'running' });
      await run(db, { refund: 'accept', key: 'b', status: 'running' });
    });
    const first = await home.millrace('sagas list --saga shop.fulfilment.v1 --limit 2');
    assert.equal(first.stdout.split('\n').length, 3);
    assert.equal(first.stderr, 'next page: --after shop.fulfilment.v1-core-b\n');
    const rest = await home.millrace('sagas list --after shop.fulfilment.v1-core-b --json');
    const { key, status } = jsonOf(rest) as { key: string; status: string };
    assert.deepEqual([key, status], ['c', 'running']);
  });

  test('reports wrong arguments and unknown sagas', async () => {
    await home.fillDefault(async () => undefined);
    for (const [line, code, said] of [
      ['sagas list x', 2, /takes options only/],
      ['sagas list --status lost', 2, /--status takes waiting, running/],
      ['sagas list --limit few', 2, /non-negative integer/],
      ['sagas show', 2, /needs one saga's stream/],
      ['sagas resume', 2, /needs one saga's stream/],
      [`sagas show ${stream}`, 1, /^SAGA_UNKNOWN: unknown saga 'o1' of 'fulfilment'/],
      ['sagas show what', 1, /^NAME_INVALID/],
    ] as const) {
      const outcome = await home.millrace(line);
      assert.deepEqual([outcome.code, outcome.stdout], [code, ''], line);
      assert.match(outcome.stderr, said);
    }
  });
});
