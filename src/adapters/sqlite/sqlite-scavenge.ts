// Removes what retention hides, by the writer thread, a step a commit.

import { softDeleted } from '../../store/expected-revision.ts';
import { scavengeStepMax, scavengeStreams, type ScavengeOptions } from '../../store/scavenge.ts';
import type { ScavengeProgress } from '../../store/store-engine.ts';
import type { SqliteWriter } from './sqlite-writer.ts';

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
    const [removed = []] = await writer.run([
      {
        sql: `delete from events where sequence in (
                select e.sequence from events e join streams s on s.id = e.stream_id
                where s.id = ?1 and e.revision < s.revision and (
                  s.tombstoned = 1 or s.truncate_before = ?2 or e.revision < s.truncate_before
                  or e.revision <= s.revision - s.max_count
                  or e.recorded_at_ms <= ?3 - s.max_age_s * 1000)
                limit ?4) returning 1`,
        values: [id ?? 0, softDeleted, options.nowMs, scavengeStepMax],
      },
    ]);
    return removed.length;
  });
}
