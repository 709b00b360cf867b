// Uses an in-memory log that responds with the error classes of the driver. Tests with a real broker are in
// destination.engines.test.ts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MultipleErrors, NetworkError, ResponseError } from '@platformatic/kafka';
import fc from 'fast-check';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { publishRecords, type KafkaWire } from './publisher.ts';
import type { KafkaRecord } from './record.ts';
import { propertyRuns } from '../../testing/property-runs.ts';

type Fault = 'not-leader' | 'cut-off' | undefined;

const recordBytesMax = 100;
const tooLarge = 10;
const notLeader = 6;

interface Log {
  readonly wire: KafkaWire;
  readonly stored: Map<string, string[]>;
  readonly requests: number[];
}

/** Two partitions; a broker rejects all records of a partition if one of them is too large. */
function startLog(faultOf: (request: number, partition: number) => Fault = () => undefined): Log {
  const stored = new Map<string, string[]>();
  const requests: number[] = [];
  const wire: KafkaWire = {
    async partitionsOf(topic) {
      if (topic === 'unknown') throw new Error('Unknown topic unknown.');
      return 2;
    },
    hashOf: (key) => Number(key),
    async produce(records) {
      requests.push(records.length);
      const produced = new Map<string, bigint>();
      const codes = new Map<number, number>();
      let isCutOff = false;
      for (const [partitionKey, group] of Map.groupBy(records, (each) => `t:${each.partition}`)) {
        const partition = group[0]?.partition ?? 0;
        const fault = faultOf(requests.length, partition);
        const log = stored.get(partitionKey) ?? [];
        const isTooLarge = group.some(({ bytes }) => bytes > recordBytesMax);
        if (fault === 'cut-off') isCutOff = true;
        if (isTooLarge || fault === 'not-leader')
          codes.set(partition, isTooLarge ? tooLarge : notLeader);
        else {
          produced.set(partitionKey, BigInt(log.length));
          stored.set(partitionKey, [...log, ...group.map(({ value }) => value)]);
        }
      }
      if (isCutOff) {
        const closed = new NetworkError('Connection closed');
        throw new MultipleErrors('Producing messages failed.', [closed], { produced: {} });
      }
      if (codes.size > 0) throw responseError(codes, produced);
      return produced;
    },
  };
  return { wire, stored, requests };
}

function responseError(
  codes: ReadonlyMap<number, number>,
  produced: ReadonlyMap<string, bigint>,
): Error {
  const rejected = [...codes].map(([index, errorCode]) => ({ index, errorCode, baseOffset: -1n }));
  const accepted = [...produced].map(([partitionKey, baseOffset]) => {
    return { index: Number(partitionKey.split(':')[1]), errorCode: 0, baseOffset };
  });
  const errors = [...codes].map(([index, code]) => [`/${index}`, [code, null]] as const);
  const response = { responses: [{ name: 't', partitionResponses: [...rejected, ...accepted] }] };
  return new ResponseError(
    0,
    11,
    Object.fromEntries(errors) as Record<string, [number, null]>,
    response,
  );
}

const record = (key: number, value: string, bytes = 10, topic = 't'): KafkaRecord => ({
  topic,
  key: String(key),
  value,
  headers: {},
  bytes,
});

const bounds = { recordsMax: 4, bytesMax: 1_000 };
const kinds = (outcomes: readonly DeliveryOutcome[]) => outcomes.map(({ kind }) => kind);

test('requests respect recordsMax, and each record gets its offset', async () => {
  const { wire, stored, requests } = startLog();
  const records = Array.from({ length: 10 }, (_, index) => record(0, String(index)));
  const outcomes = await publishRecords(wire, records, bounds);
  assert.deepEqual(requests, [4, 4, 2]);
  assert.deepEqual(outcomes[9], { kind: 'sent', receipt: 't:0:9' });
  assert.deepEqual(
    stored.get('t:0'),
    records.map(({ value }) => value),
  );
});

test('requests respect bytesMax, and a larger record is sent alone', async () => {
  const { wire, requests } = startLog();
  const records = [40, 40, 40, 90, 10].map((bytes, index) => record(0, String(index), bytes));
  await publishRecords(wire, records, { recordsMax: 10, bytesMax: 80 });
  assert.deepEqual(requests, [2, 1, 1, 1]);
});

test('after a record that must be retried, only other partitions continue', async () => {
  const { wire, stored } = startLog((request, partition) =>
    request === 1 && partition === 0 ? 'not-leader' : undefined,
  );
  const records = [0, 1, 0, 1, 0, 1].map((key, index) => record(key, String(index)));
  const outcomes = await publishRecords(wire, records, bounds);
  assert.deepEqual(kinds(outcomes), ['retry', 'sent', 'retry', 'sent', 'retry', 'sent']);
  const last = outcomes[4];
  assert.ok(last?.kind === 'retry' && last.attempted === false);
  assert.equal(stored.get('t:0'), undefined);
});

test('an unknown or invalid topic does not affect the others', async () => {
  const { wire } = startLog();
  const outcomes = await publishRecords(
    wire,
    [record(0, 'a', 10, 'unknown'), record(0, 'b'), record(0, 'c', 10, 'a b')],
    bounds,
  );
  assert.deepEqual(kinds(outcomes), ['retry', 'sent', 'dead']);
});

test('with any failures, each record has one outcome, sent records are stored in order, and only oversized ones are dead', async () => {
  const fault = fc.constantFrom<Fault>(undefined, undefined, undefined, 'not-leader', 'cut-off');
  const given = fc.record({ key: fc.nat(1), isLarge: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(given, { maxLength: 30 }), fc.array(fault), async (items, faults) => {
      const { wire, stored } = startLog((request, partition) => faults[request * 2 + partition]);
      const records = items.map(({ key, isLarge }, index) =>
        record(key, String(index), isLarge ? recordBytesMax + 1 : 10),
      );
      const outcomes = await publishRecords(wire, records, bounds);
      assert.equal(outcomes.length, records.length);
      for (const key of [0, 1]) {
        const own = records.flatMap((each, at) => {
          const outcome = outcomes[at];
          return outcome !== undefined && each.key === String(key) ? [{ each, outcome }] : [];
        });
        const log = stored.get(`t:${key}`) ?? [];
        const sent = own.filter(({ outcome }) => outcome.kind === 'sent');
        // An interrupted request may have been stored, after all records that were sent before it.
        assert.deepEqual(
          log.slice(0, sent.length),
          sent.map(({ each }) => each.value),
        );
        const firstBack = own.findIndex(({ outcome }) => outcome.kind === 'retry');
        if (firstBack >= 0) {
          assert.ok(own.slice(firstBack).every(({ outcome }) => outcome.kind === 'retry'));
        }
        for (const { each, outcome } of own) {
          if (outcome.kind === 'dead') assert.ok(each.bytes > recordBytesMax);
          if (outcome.kind === 'sent') assert.ok(each.bytes <= recordBytesMax);
        }
      }
    }),
    { numRuns: propertyRuns(500) },
  );
});
