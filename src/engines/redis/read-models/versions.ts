// The versions of read models in Redis, for a platform without an SQL database: one HASH for each family.

import { redisKeys } from '../../../contracts/redis-keys.ts';
import type {
  ReadModelVersion,
  ReadModelVersions,
  VersionStatus,
} from '../../../projections/read-model-versions.ts';
import { parsePosition } from '../../../store/position.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { eachOf, pairsOf } from '../connection/engine.ts';
import { loadScripts } from '../connection/script.ts';

const scripts = loadScripts(new URL('scripts/', import.meta.url), [
  'declareVersion',
  'setVersionStatus',
  'activateVersion',
]);

export function redisReadModelVersions(connection: RedisConnection): ReadModelVersions {
  const { run } = connection;
  const keyOf = (family: string): string => redisKeys.readModelVersions(family);

  async function versionsOf(family: string): Promise<readonly ReadModelVersion[]> {
    return versionsIn(family, await connection.ask((client) => client.hgetall(keyOf(family))));
  }

  return {
    async declare({ family, version, projection, target }, nowMs) {
      await connection.ask((client) => client.sadd(redisKeys.readModels(), family));
      const values = [version, projection, target ?? '', nowMs];
      const cells = (await run(scripts.declareVersion, [keyOf(family)], values)) as string[];
      const declared = versionsIn(family, Object.fromEntries(pairsOf(cells)));
      return declared.find((each) => each.version === version) as ReadModelVersion;
    },
    async list(family) {
      if (family !== undefined) return versionsOf(family);
      const families = await connection.ask((client) => client.smembers(redisKeys.readModels()));
      return (await eachOf(families.toSorted(), versionsOf)).flat();
    },
    async setStatus({ family, version }, { from, to }, nowMs) {
      const values = [version, to, nowMs, ...from];
      return (await run(scripts.setVersionStatus, [keyOf(family)], values)) === 1;
    },
    async activate({ family, version }, nowMs) {
      return (await run(scripts.activateVersion, [keyOf(family)], [version, nowMs])) === 1;
    },
  };
}

function versionsIn(
  family: string,
  fields: Readonly<Record<string, string>>,
): readonly ReadModelVersion[] {
  return Object.keys(fields)
    .flatMap((name) => /^(\d+):status$/.exec(name)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => a - b)
    .map((version) => {
      const target = fields[`${version}:target`] ?? '';
      return {
        family,
        version,
        projection: fields[`${version}:projection`] ?? '',
        status: fields[`${version}:status`] as VersionStatus,
        active: fields['active'] === String(version),
        target: target === '' ? undefined : parsePosition(target),
        changedAtMs: Number(fields[`${version}:changedAtMs`]),
      };
    });
}
