// Removes what retention hides, a step a commit.

import { softDeleted } from '../../store/expected-revision.ts';
import { scavengeStepMax, scavengeStreams, type ScavengeOptions } from '../../store/scavenge.ts';
import type { ScavengeProgress } from '../../store/store-engine.ts';
import { askPostgres, type PostgresConnection } from './postgres-connection.ts';
import { quoteName } from './postgres-schema.ts';

export async function scavengePostgres(
  connection: PostgresConnection,
  schema: string,
  options: ScavengeOptions,
): Promise<ScavengeProgress> {
  const at = quoteName(schema);
  const streamsSql = {
    name: `${schema} scavenge streams`,
    text: `select id from ${at}.streams where truncate_before > 0 or max_count is not null
           or max_age_s is not null or tombstoned order by id`,
  };
  // The stream's last event stays: its revision and its age are known by it.
  const stepSql = {
    name: `${schema} scavenge step`,
    text: `with gone as (
             delete from ${at}.events where sequence in (
               select e.sequence from ${at}.events e join ${at}.streams s on s.id = e.stream_id
               where s.id = $1 and e.revision < s.revision and (
                 s.tombstoned or s.truncate_before = $2 or e.revision < s.truncate_before
                 or e.revision <= s.revision - s.max_count
                 or e.recorded_at_ms <= $3 - s.max_age_s * 1000)
               limit $4) returning 1)
           select count(*) from gone`,
  };
  const streams = await askPostgres(() => connection.query(streamsSql, []));
  return scavengeStreams(streams, options, async ([id]) => {
    const values = [id, softDeleted, options.nowMs, scavengeStepMax];
    const [[count] = []] = await askPostgres(() => connection.query(stepSql, values));
    return Number(count);
  });
}
