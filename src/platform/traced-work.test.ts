// Jobs and messages of a flow while their engines are down.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openMemory } from '../engines/memory/index.ts';
import { createEnvelope } from '../contracts/index.ts';
import { systemClock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import { tracedWorkOf } from './traced-work.ts';

test('a flow is read without jobs and messages while the engine of these is down', async () => {
  await using db = openMemory();
  const { sagas, store } = db;
  const aggregate = { bc: 'shop', type: 'order', id: '1' };
  const context = { tenant: 'core', aggregate, correlationId: 'flow' };
  const event = createEnvelope({ type: 'order.placed.v1', payload: {} }, context);
  await store.append('shop.order.v1-core-1', [event]);
  const events = await store.readAll().toArray();
  const flow = { correlationId: 'flow', tenant: undefined, events, signal: undefined };
  const readWith = async (code: 'BUS_UNAVAILABLE' | 'NOT_SUPPORTED' | 'TASKS_UNAVAILABLE') => {
    const fail = async (): Promise<never> => {
      throw new MillraceError(code, 'no connection');
    };
    const engines = { bus: fail, has: () => true, sagas, store };
    return tracedWorkOf({ clock: systemClock, engines, tasks: fail })(flow);
  };
  const nothing = { tasks: [], publications: [], sagas: [], isCut: true };
  assert.deepEqual(await readWith('BUS_UNAVAILABLE'), nothing);
  assert.deepEqual(await readWith('TASKS_UNAVAILABLE'), nothing);
  await assert.rejects(readWith('NOT_SUPPORTED'), { code: 'NOT_SUPPORTED' });
});
