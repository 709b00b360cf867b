// The projector commits outbox rows and its checkpoint in one transaction.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MillraceError } from '../../src/foundation/error.ts';
import { startOutboxProjector, type OutboxProjectorRoles } from '../../src/outbox/index.ts';
import type { SubscriptionStorage } from '../../src/subscriptions/index.ts';
import { newEvents, streamName, until, type EngineName } from '../store/rig.ts';

export interface ProjectorRig<Transaction>
  extends OutboxProjectorRoles<Transaction>, AsyncDisposable {}

export function projectorCases<Transaction>(
  engine: EngineName,
  open: () => Promise<ProjectorRig<Transaction>>,
): void {
  test(`outbox rows and checkpoint commit together on ${engine}, and a failed commit leaves neither`, async () => {
    await using rig = await open();
    const { store, outbox } = rig;
    const events = newEvents('p', 50);
    await store.append(streamName(1), events);
    const failed = Promise.withResolvers<void>();
    const recovered = Promise.withResolvers<void>();
    const subscriptions = failingOnce(rig.subscriptions, failed.resolve, recovered.promise);
    const definition = {
      name: 'sub:rig:outbox:v1',
      retry: { initialMs: 1, factor: 1, capMs: 1, jitterMs: 0, attemptsMax: 3 },
      mapper: {
        map: () => ({ integrationType: 'webhook:x', eventType: 'item.created.v1', payload: {} }),
      },
    };
    const roles = { store, subscriptions, outbox };
    await using runner = await startOutboxProjector(roles, definition);
    await failed.promise;
    assert.deepEqual(await outbox.list({}), []);
    recovered.resolve();
    await runner.whenCaughtUp();
    const rows = await outbox.list({}, { oldestFirst: true });
    assert.deepEqual(
      rows.map(({ sourceEventId }) => sourceEventId),
      events.map(({ eventId }) => eventId),
    );
    await until('all messages can be claimed', async () => {
      const claimed = await outbox.claimDueBatch('w', 100);
      return claimed.length === events.length;
    });
  });
}

/** Rolls the first commit back, as if the process died before it. */
function failingOnce<Transaction>(
  storage: SubscriptionStorage<Transaction>,
  onFailure: () => void,
  recovered: Promise<void>,
): SubscriptionStorage<Transaction> {
  let hasFailed = false;
  return {
    ...storage,
    async begin(fence) {
      const effect = await storage.begin(fence);
      return {
        ...effect,
        async commit(settlement) {
          if (hasFailed) {
            await recovered;
            return effect.commit(settlement);
          }
          hasFailed = true;
          await effect.rollback();
          onFailure();
          throw new MillraceError('STORE_UNAVAILABLE', 'cut off before the commit');
        },
      };
    },
  };
}
