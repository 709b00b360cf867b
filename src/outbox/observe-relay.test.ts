import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Observer } from '../foundation/observer.ts';
import { observeRelay } from './observe-relay.ts';
import type { LaneBatch } from './outbox-streams.ts';

test('a batch that is sent has one span, linked to the traces of its messages', () => {
  const told: unknown[] = [];
  const observer: Observer = {
    span(name, attributes, parent, links) {
      told.push([name, attributes, parent, links]);
      return {
        context: undefined,
        set: () => assert.fail('nothing is set'),
        fail: () => assert.fail('nothing fails'),
        end: () => void told.push('end'),
      };
    },
  };
  const traceparents = ['00-a-1-01', '00-b-2-01'];
  const batch = {
    claim: { integrationType: 'kafka:payments', lane: 3, epoch: 1 },
    items: [{}, ...traceparents.map((traceparent) => ({ traceparent }))].map((headers, at) => ({
      message: { headers },
      position: at,
      isParked: false,
    })),
  } as unknown as LaneBatch;
  const relay = observeRelay(observer);
  relay.start(batch, 3);
  relay.end(batch, 5);
  const links = traceparents.map((traceparent) => ({ traceparent }));
  assert.deepEqual(told, [
    ['deliver message', { integrationType: 'kafka:payments', events: 3 }, undefined, links],
    'end',
  ]);
});
