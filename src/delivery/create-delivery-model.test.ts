import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fakeClock } from '../testing/fake-clock.ts';
import { createDelivery } from './create-delivery.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const type = 'partner:acme';
const message = {
  id: 'o-1',
  integrationType: type,
  eventType: 'payment.completed.v1',
  payload: {},
  sourceStreamId: 'paymenthub.payment.v1-core-1',
  sourceEventId: 'e-1',
};

const outcomes: Readonly<Record<string, DeliveryOutcome>> = {
  sent: { kind: 'sent' },
  dead: { kind: 'dead', error: 'HTTP 422' },
  failed: { kind: 'retry', error: 'HTTP 500' },
  throttled: { kind: 'retry', error: 'HTTP 429', afterMs: 700, throttled: true },
  snoozed: { kind: 'retry', error: 'not yet', afterMs: 5, attempted: false },
};

// Several at once, so that few steps open it, wait, and send more messages than probes are allowed.
const probes = fc.integer({ min: 1, max: 2 });
const many = fc.integer({ min: 1, max: 5 });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('deliver' as const), count: many }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      count: many,
      pick: fc.nat(50),
      how: fc.constantFrom(...Object.keys(outcomes), 'failed', 'failed'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.constantFrom(1, 500, 1_000, 2_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const) }) },
);

interface Call {
  readonly era: number;
  readonly finish: (outcome: DeliveryOutcome) => void;
}

const turns = async (): Promise<void> => {
  await new Promise(setImmediate);
};

test('in any history no call passes an open breaker, only probes pass a half-open one, and each call has one outcome', async () => {
  await fc.assert(
    fc.asyncProperty(probes, fc.array(step, { maxLength: 40 }), async (probesMax, steps) => {
      const clock = fakeClock();
      const calls: Call[] = [];
      const violations: string[] = [];
      let stopping = new AbortController();
      const breaker = {
        failuresMax: 2,
        openMs: 1_000,
        openMsMax: 4_000,
        probesMax,
        probesToClose: 2,
        probeMsMax: 1_000_000,
      };
      const delivery = createDelivery({
        clock,
        destinations: {
          partner: {
            timeoutMs: 1_000_000,
            breaker,
            send: () => {
              const state = delivery.breakerOf(type);
              const sameEra = calls.filter(({ era }) => era === state.era).length;
              // Recorded, not thrown: an error of a destination would become an outcome.
              if (state.kind === 'open') violations.push('passed an open breaker');
              if (state.kind === 'half-open' && sameEra >= breaker.probesMax) {
                violations.push(`${sameEra + 1} probes at once`);
              }
              return new Promise((resolve) => {
                calls.push({ era: state.era, finish: resolve });
              });
            },
          },
        },
      });
      const settled: DeliveryOutcome[] = [];
      let begun = 0;
      const deliver = (): void => {
        begun += 1;
        void delivery
          .deliver(message, { signal: stopping.signal })
          .then((outcome) => settled.push(outcome));
      };
      for (const each of steps) {
        if (each.do === 'deliver') for (let n = 0; n < each.count; n += 1) deliver();
        if (each.do === 'finish') {
          for (let n = 0; n < each.count; n += 1) {
            const [call] = calls.splice(each.pick % Math.max(1, calls.length), 1);
            call?.finish(outcomes[each.how] ?? assert.fail());
          }
        }
        if (each.do === 'advance') await clock.advance(each.ms);
        if (each.do === 'stop') {
          stopping.abort();
          // Not waited for: their later results are ignored.
          calls.length = 0;
          stopping = new AbortController();
        }
        await turns();
      }
      for (const call of calls.splice(0)) call.finish({ kind: 'sent' });
      await turns();
      assert.equal(settled.length, begun);
      // After the longest pause, a destination that works is used as before.
      await clock.advance(breaker.openMsMax);
      for (let probe = 0; probe < breaker.probesToClose; probe += 1) {
        deliver();
        await turns();
        calls.pop()?.finish({ kind: 'sent' });
        await turns();
      }
      assert.equal(delivery.breakerOf(type).kind, 'closed');
      assert.equal(settled.length, begun);
      assert.deepEqual(violations, []);
      // The timer of the calls ends in the turn after the last one.
      await new Promise(setImmediate);
      assert.equal(clock.sleepers, 0);
    }),
    { numRuns: propertyRuns(500) },
  );
});
