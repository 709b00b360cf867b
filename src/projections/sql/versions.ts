import { toPosition, toSequence } from '../../store/position.ts';
import { SqlExpectationFailed, type SqlCells, type SqlDatabase } from '../../store/sql-database.ts';
import type { ReadModelVersion, ReadModelVersions, VersionStatus } from '../read-model-versions.ts';

export function sqlVersions({ dialect, run }: SqlDatabase): ReadModelVersions {
  const versions = dialect.table('read_versions');
  const select = `select family, version, projection, status, active, target, changed_at_ms from ${versions}`;
  const sql = {
    // If two versions are declared first concurrently, the unique index keeps one of them active.
    declare: `insert into ${versions} (family, version, projection, status, active, target, changed_at_ms)
      select cast(?1 as text), cast(?2 as integer), cast(?3 as text), 'building',
        case when exists (select 1 from ${versions} where family = ?1) then 0 else 1 end,
        cast(?4 as bigint), cast(?5 as bigint)
      where true on conflict do nothing`,
    declareInactive: `insert into ${versions} (family, version, projection, status, active, target, changed_at_ms)
      values (?1, ?2, ?3, 'building', 0, ?4, ?5) on conflict do nothing`,
    get: `${select} where family = ?1 and version = ?2`,
    list: `${select} order by family, version`,
    listFamily: `${select} where family = ?1 order by version`,
    setStatus: `update ${versions} set status = ?3, changed_at_ms = ?4
      where family = ?1 and version = ?2
      and status in (select v.value from ${dialect.values('?5')} v) returning 1`,
    lock: `select version from ${versions} where family = ?1 order by version${dialect.takeRow}`,
    deactivate: `update ${versions} set active = 0, changed_at_ms = ?3
      where family = ?1 and active = 1 and version <> ?2`,
    activate: `update ${versions} set active = 1, changed_at_ms = ?3
      where family = ?1 and version = ?2 and status = 'ready' returning 1`,
  };
  return {
    async declare({ family, version, projection, target }, nowMs) {
      const position = target === undefined ? null : toSequence(target);
      const values = [family, version, projection, position, nowMs];
      const results = await run([
        { sql: sql.declare, values },
        { sql: sql.declareInactive, values },
        { sql: sql.get, values: [family, version] },
      ]);
      const [row] = results[2] ?? [];
      return toVersion(row ?? []);
    },
    async list(family) {
      const [rows = []] = await run([
        family === undefined
          ? { sql: sql.list, values: [] }
          : { sql: sql.listFamily, values: [family] },
      ]);
      return rows.map(toVersion);
    },
    async setStatus({ family, version }, { from, to }, nowMs) {
      const values = [family, version, to, nowMs, JSON.stringify(from)];
      const [rows = []] = await run([{ sql: sql.setStatus, values }]);
      return rows.length > 0;
    },
    async activate({ family, version }, nowMs) {
      const values = [family, version, nowMs];
      try {
        await run([
          { sql: sql.lock, values: [family] },
          { sql: sql.deactivate, values },
          { sql: sql.activate, values, expect: { what: 'new', rows: 1 } },
        ]);
        return true;
      } catch (error) {
        if (error instanceof SqlExpectationFailed) return false;
        throw error;
      }
    },
  };
}

function toVersion(row: SqlCells): ReadModelVersion {
  const [family, version, projection, status, active, target, changedAtMs] = row;
  return {
    family: String(family),
    version: Number(version),
    projection: String(projection),
    status: String(status) as VersionStatus,
    active: Number(active) === 1,
    target: target === null || target === undefined ? undefined : toPosition(Number(target)),
    changedAtMs: Number(changedAtMs),
  };
}
