// Removes what retention hides, by the writer thread, a step a commit.

import { softDeleted } from '../../../store/expected-revision.ts';
import { scavengeStepMax, scavengeStreams, type ScavengeOptions } from '../../../store/scavenge.ts';
import type { ScavengeProgress } from '../../../store/store-engine.ts';
import type { SqliteWriter } from '../thread/writer.ts';

export async function scavengeSqlite(
  writer: SqliteWriter,
  options: ScavengeOptions,
): Promise<ScavengeProgress> {
  const [streams = []] = await writer.run([
    {
      sql: `select id from streams where truncate_before > 0 or max_count is not null
            or max_age_s is not null or tombstoned = 1 order by id`,
      values: [],
    },
  ]);
  return scavengeStreams(streams, options, async ({ id }) => {
    // The stream's last event stays: its revision and its age are known by it.
    const hidden = `from events e join streams s on s.id = e.stream_id
      where s.id = ?1 and e.revision < s.revision and (
        s.tombstoned = 1 or s.truncate_before = ?2 or e.revision < s.truncate_before
        or e.revision <= s.revision - s.max_count
        or e.recorded_at_ms <= ?3 - s.max_age_s * 1000)
      order by e.revision limit ?4`;
    const values = [id ?? 0, softDeleted, options.nowMs, scavengeStepMax];
    const [, removed = []] = await writer.run([
      {
        sql: `delete from event_ids where (stream_id, event_id, revision) in (
                select e.stream_id, e.event_id, e.revision ${hidden})`,
        values,
      },
      {
        sql: `delete from events where sequence in (select e.sequence ${hidden}) returning 1`,
        values,
      },
    ]);
    return removed.length;
  });
}
