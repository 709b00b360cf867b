// The group of an archive: everything of its streams is copied to cold storage, and acked when it is there. Killed in
// between, the next run finds the copy and acks.

import type { ArchiveStreamOptions } from './archive.ts';
import { copyToArchive } from './archive.ts';
import type { Bus, GroupDefinition } from './bus.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { ColdStorage } from './cold-storage.ts';
import { compareSequences } from './sequence.ts';

/** What came meanwhile is looked at again by the next run, at the earliest. */
const laterMs = 60_000;

/** Resolves with how many were copied now. */
export async function drainToArchive(
  bus: Bus,
  storage: ColdStorage,
  definition: Pick<GroupDefinition, 'group' | 'subject'>,
  options: ArchiveStreamOptions,
): Promise<number> {
  const group = await bus.group({ ...definition, maxDeliveries: limits.maxDeliveriesMax });
  const upTo = new Map<string, string>();
  let archived = 0;
  for (let after: string | undefined; ;) {
    const page = await bus.streams(definition.subject, { after, limit: limits.pageDefault });
    for (const { subject } of page) {
      const copied = await copyToArchive(bus, storage, subject, options);
      archived += copied.archived;
      if (copied.upTo !== undefined) upTo.set(subject, copied.upTo.lastSequence);
    }
    after = page.at(-1)?.subject;
    if (page.length < limits.pageDefault) break;
  }
  const { signal } = options;
  for (;;) {
    const some = await group.fetch({ limit: limits.fetchMax, waitMs: 0, signal });
    if (some.length === 0) return archived;
    const isThere = ({ subject, sequence }: (typeof some)[number]): boolean =>
      compareSequences(sequence, upTo.get(subject) ?? '0') <= 0;
    await group.ack(some.filter(isThere));
    const younger = some.filter((each) => !isThere(each));
    const reason = 'not archived yet';
    await Promise.all(younger.map((each) => each.nack({ delayMs: laterMs, reason })));
  }
}
