// Publishes records: assigns each to a partition, sends requests of bounded size one after the other, and turns the
// response of each partition into outcomes.

import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import { cleanText } from '../../foundation/error-text.ts';
import { batchesOf } from '../../foundation/async/batches-of.ts';
import { outcomeOfCode, outcomeOfFailure, resultsInError, type PartitionResult } from './error.ts';
import { isTopicName, type KafkaRecord } from './record.ts';

interface AssignedRecord extends KafkaRecord {
  readonly partition: number;
}

/** The required part of the driver. */
export interface KafkaWire {
  partitionsOf(topic: string): Promise<number>;
  /** Returns a hash in [0, 2³¹) that depends on the key only. */
  hashOf(key: string): number;
  /** The first offset by `topic:partition`; rejects if a partition failed. */
  produce(records: readonly AssignedRecord[]): Promise<ReadonlyMap<string, bigint>>;
}

export interface RequestBounds {
  readonly recordsMax: number;
  readonly bytesMax: number;
}

interface Entry {
  /** The index of the record in the input. */
  readonly at: number;
  readonly record: AssignedRecord;
}

/**
 * Returns one outcome per record, in their order; never rejects. After a record that must be retried, no later record
 * of its partition is sent, which keeps their order.
 */
export async function publishRecords(
  wire: KafkaWire,
  records: readonly KafkaRecord[],
  bounds: RequestBounds,
): Promise<readonly DeliveryOutcome[]> {
  const outcomes: DeliveryOutcome[] = records.map(() => noResponse);
  const entries = await assignPartitions(wire, records, outcomes);
  const blocked = new Set<string>();
  const limits = { countMax: bounds.recordsMax, sizeMax: bounds.bytesMax };
  const requests = batchesOf(entries, { ...limits, sizeOf: ({ record }) => record.bytes });
  for (let request = requests.shift(); request !== undefined; request = requests.shift()) {
    const open = request.filter(({ at, record }) => {
      if (blocked.has(partitionKeyOf(record))) outcomes[at] = blockedOutcome;
      return !blocked.has(partitionKeyOf(record));
    });
    if (open.length === 0) continue;
    const again: Entry[][] = [];
    for (const [partitionKey, { group, result }] of await produce(wire, open)) {
      const outcome = outcomeOf(result);
      // A broker rejects all records of a partition together: bisect to find the invalid one.
      if (outcome.kind === 'dead' && group.length > 1) {
        const half = Math.ceil(group.length / 2);
        again.push(group.slice(0, half), group.slice(half));
        continue;
      }
      if (outcome.kind === 'retry') blocked.add(partitionKey);
      for (const [index, { at }] of group.entries()) {
        outcomes[at] =
          'offset' in result ? storedAt(partitionKey, result.offset + BigInt(index)) : outcome;
      }
    }
    requests.unshift(...again);
  }
  return outcomes;
}

/** The outcome of a record that the response does not mention. */
export const noResponse: DeliveryOutcome = {
  kind: 'retry',
  error: 'the response does not mention the record',
  ambiguous: true,
};

const blockedOutcome: DeliveryOutcome = {
  kind: 'retry',
  error: 'an earlier message of the partition was not sent',
  attempted: false,
};

function storedAt(partitionKey: string, offset: bigint): DeliveryOutcome {
  return { kind: 'sent', receipt: `${partitionKey}:${offset}` };
}

function partitionKeyOf({ topic, partition }: AssignedRecord): string {
  return `${topic}:${partition}`;
}

/** Records of an unavailable topic get their outcome here. */
async function assignPartitions(
  wire: KafkaWire,
  records: readonly KafkaRecord[],
  outcomes: DeliveryOutcome[],
): Promise<readonly Entry[]> {
  const topics = [...new Set(records.map(({ topic }) => topic))];
  const counts = new Map(
    await Promise.all(
      topics.map(async (topic) => [topic, await partitionsOf(wire, topic)] as const),
    ),
  );
  return records.flatMap((record, at) => {
    const count = counts.get(record.topic);
    if (typeof count === 'number') {
      return [{ at, record: { ...record, partition: wire.hashOf(record.key) % count } }];
    }
    if (count !== undefined) outcomes[at] = count;
    return [];
  });
}

async function partitionsOf(wire: KafkaWire, topic: string): Promise<number | DeliveryOutcome> {
  if (!isTopicName(topic))
    return { kind: 'dead', error: `invalid topic name '${cleanText(topic, 100)}'` };
  try {
    return await wire.partitionsOf(topic);
  } catch (error) {
    return outcomeOfFailure(error);
  }
}

type GroupResult = PartitionResult | { readonly kind: 'failed'; readonly outcome: DeliveryOutcome };

async function produce(
  wire: KafkaWire,
  entries: readonly Entry[],
): Promise<Map<string, { readonly group: Entry[]; readonly result: GroupResult }>> {
  const groups = Map.groupBy(entries, ({ record }) => partitionKeyOf(record));
  let results: ReadonlyMap<string, PartitionResult>;
  let missing: DeliveryOutcome;
  try {
    const offsets = await wire.produce(entries.map(({ record }) => record));
    results = new Map(
      [...offsets].map(([partitionKey, offset]) => [
        partitionKey,
        { kind: 'stored' as const, offset },
      ]),
    );
    missing = noResponse;
  } catch (error) {
    results = resultsInError(error);
    missing = outcomeOfFailure(error);
  }
  return new Map(
    [...groups].map(([partitionKey, group]) => {
      const result: GroupResult = results.get(partitionKey) ?? { kind: 'failed', outcome: missing };
      return [partitionKey, { group, result }];
    }),
  );
}

function outcomeOf(result: GroupResult): DeliveryOutcome {
  if (result.kind === 'failed') return result.outcome;
  return result.kind === 'stored' ? { kind: 'sent' } : outcomeOfCode(result.code, result.error);
}
