// Reads all records of a topic without a consumer group.

import { Consumer } from '@platformatic/kafka';

export interface TopicRecord {
  readonly partition: number;
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the records by partition, in the order of their offsets. */
export async function recordsOf(broker: string, topic: string): Promise<readonly TopicRecord[]> {
  const consumer = new Consumer({
    clientId: 'tests',
    groupId: 'tests',
    bootstrapBrokers: [broker],
  });
  try {
    const { topics } = await consumer.metadata({ topics: [topic] });
    const { id = '', partitions = [] } = topics.get(topic) ?? {};
    const found: TopicRecord[] = [];
    for (const [partition, { leader }] of partitions.entries()) {
      for (let fetchOffset = 0n; ;) {
        const fetchOptions = {
          currentLeaderEpoch: -1,
          lastFetchedEpoch: -1,
          partitionMaxBytes: 64_000_000,
        };
        const { responses } = await consumer.fetch({
          node: leader,
          maxWaitTime: 1,
          minBytes: 0,
          topics: [{ topicId: id, partitions: [{ partition, fetchOffset, ...fetchOptions }] }],
        });
        const batches = responses
          .flatMap((each) => each.partitions)
          .flatMap((each) => each.records ?? []);
        if (batches.length === 0) break;
        for (const { firstOffset, lastOffsetDelta, records } of batches) {
          fetchOffset = firstOffset + BigInt(lastOffsetDelta) + 1n;
          for (const { key, value, headers } of records) {
            const named = [...headers].map(([name, text]) => [String(name), String(text)]);
            found.push({
              partition,
              key: String(key),
              value: String(value),
              headers: Object.fromEntries(named) as Record<string, string>,
            });
          }
        }
      }
    }
    return found;
  } finally {
    await consumer.close();
  }
}
