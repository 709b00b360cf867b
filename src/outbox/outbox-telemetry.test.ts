// Sections 10 and 12 of the outbox document, name by name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../testing/assertions.ts';
import { openMemory } from '../engines/memory/index.ts';
import { createEnvelope } from '../contracts/envelope.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Observer } from '../foundation/observer.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { stressLifecycle } from '../testing/lifecycle-stress.ts';
import { createOutboxDispatcher } from './outbox-dispatcher.ts';
import type { OutboxLedger } from './outbox-ledger.ts';
import { createOutboxMetrics } from './outbox-metrics.ts';
import { startOutboxProjector } from './outbox-projector.ts';

type Fields = Readonly<Record<string, unknown>>;

function recorder() {
  const metrics = new Map<string, string>();
  const logs: Fields[] = [];
  const log = (fields: object): void => void logs.push(fields as Fields);
  const observer: Observer = {
    count: (name) => void metrics.set(name, 'counter'),
    gauge: (name) => void metrics.set(name, 'gauge'),
    record: (name) => void metrics.set(name, 'histogram'),
    log: { debug: log, info: log, warn: log, error: log },
  };
  return { observer, metrics, logs };
}

function newEvent(outcome: string) {
  return createEnvelope(
    { type: 'payment.completed.v1', payload: { outcome, card: '4111' } },
    {
      tenant: 'core',
      aggregate: { bc: 'paymenthub', type: 'payment', id: outcome },
      correlationId: `c-${outcome}`,
      user: { id: 'u1', name: 'Ada Lovelace' },
    },
  );
}

test('operations, phases, fields and metrics are those of the document', async () => {
  const { observer, metrics, logs } = recorder();
  await using db = openMemory();
  const ledger = openMemory().outbox;
  let isAway = true;
  const flaky: OutboxLedger<never> = {
    ...ledger,
    async enqueueMany(items) {
      if (isAway) {
        isAway = false;
        throw new MillraceError('STORE_UNAVAILABLE', 'away');
      }
      return ledger.enqueueMany(items);
    },
  };
  for (const outcome of ['sent', 'failed']) {
    await db.store.append(`paymenthub.payment.v1-core-${outcome}`, [newEvent(outcome)]);
  }
  const definition = {
    name: 'sub:paymenthub:outbox:v1',
    retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 5 },
    mapper: {
      map({ aggregate }: { readonly aggregate: { readonly id: string } }) {
        const message = {
          integrationType: 'webhook:x',
          eventType: 'payment.completed.v1',
          payload: { outcome: aggregate.id },
          maxAttempts: 2,
        };
        return [message, message];
      },
    },
  };
  await using projector = await startOutboxProjector({ ...db, outbox: flaky }, definition, {
    observer,
  });
  await projector.whenCaughtUp();
  await using gauges = createOutboxMetrics({ ledger, observer });
  await gauges.start();
  await using dispatcher = createOutboxDispatcher({
    ledger,
    observer,
    schedule: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0 },
    deliver: async ({ payload }) =>
      payload['outcome'] === 'sent' ? { kind: 'sent' } : { kind: 'retry', error: 'HTTP 500' },
  });
  await dispatcher.start();
  await eventually('one is dead', async () => (await ledger.counts()).DEAD === 1);
  await dispatcher.stop();

  const logged = new Set(
    logs.map(({ operation, phase }) => `${String(operation)} ${String(phase)}`),
  );
  for (const name of [
    'OUTBOX_ENQUEUE START',
    'OUTBOX_ENQUEUE SUCCESS',
    'OUTBOX_ENQUEUE DUPLICATE',
    'OUTBOX_ENQUEUE ERROR',
    'OUTBOX_CLAIM SUCCESS',
    'OUTBOX_DIRECT_SEND START',
    'OUTBOX_DELIVER SENT',
    'OUTBOX_DELIVER FAILED',
    'OUTBOX_DELIVER DEAD',
  ]) {
    assert.ok(logged.has(name), `${name} is missing from ${[...logged].join(', ')}`);
  }
  for (const fields of logs.filter(({ outboxId, eventId }) => outboxId ?? eventId)) {
    const { correlationId, tenantId, userId, source } = fields;
    assert.match(String(correlationId), /^c-(sent|failed)$/);
    assert.deepEqual([tenantId, userId], ['core', 'u1']);
    assert.match(String(source), /^(sub:paymenthub:outbox:v1|outbox-dispatcher)$/);
  }
  assert.doesNotMatch(JSON.stringify(logs), /4111|Ada/);
  const documented = {
    outbox_pending_total: 'gauge',
    outbox_claimed_total: 'counter',
    outbox_sent_total: 'counter',
    outbox_failed_total: 'counter',
    outbox_dead_total: 'counter',
    outbox_claim_duration_ms: 'histogram',
    outbox_delivery_duration_ms: 'histogram',
  };
  for (const [name, kind] of Object.entries(documented))
    assert.equal(metrics.get(name), kind, name);
});

test('the ledger is counted periodically, also after an outage', async () => {
  const clock = fakeClock();
  const values: number[] = [];
  let rounds = 0;
  const ledger = {
    async counts() {
      rounds += 1;
      if (rounds === 2) throw new MillraceError('STORE_UNAVAILABLE', 'away');
      return { PENDING: rounds, CLAIMED: 0, SENT: 0, FAILED: 0, DEAD: 0, DISCARDED: 0 };
    },
  };
  await using metrics = createOutboxMetrics({
    ledger,
    clock,
    observer: {
      gauge: (name, value) => void (name === 'outbox_pending_total' && values.push(value)),
    },
  });
  await metrics.start();
  for (const round of [1, 2, 3]) {
    await eventually('it was counted', async () => rounds === round);
    await clock.advance(15_000);
  }
  await eventually('it was counted again', async () => values.length >= 3);
  assert.deepEqual(values.slice(0, 3), [1, 3, 4]);
});

test('counting starts and stops in any order', async () => {
  await stressLifecycle({
    rounds: 50,
    create: () =>
      createOutboxMetrics({ ledger: openMemory().outbox, observer: { gauge: () => undefined } }),
    assertReleased: async () => undefined,
  });
});
