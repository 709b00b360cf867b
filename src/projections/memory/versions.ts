import type { ReadModelVersion, ReadModelVersions, VersionKey } from '../read-model-versions.ts';

export function memoryVersions(): ReadModelVersions {
  const versions = new Map<string, ReadModelVersion>();
  const keyOf = ({ family, version }: VersionKey): string => `${family} ${version}`;
  return {
    async declare({ family, version, projection, target }, changedAtMs) {
      const known = versions.get(keyOf({ family, version }));
      if (known !== undefined) return known;
      const active = ![...versions.values()].some((each) => each.family === family);
      const declared: ReadModelVersion = {
        family,
        version,
        projection,
        status: 'building',
        active,
        target,
        changedAtMs,
      };
      versions.set(keyOf(declared), declared);
      return declared;
    },
    async list(family) {
      return [...versions.values()]
        .filter((each) => family === undefined || each.family === family)
        .toSorted((a, b) =>
          a.family === b.family ? a.version - b.version : a.family < b.family ? -1 : 1,
        );
    },
    async setStatus(key, { from, to }, changedAtMs) {
      const known = versions.get(keyOf(key));
      if (known === undefined || !from.includes(known.status)) return false;
      versions.set(keyOf(key), { ...known, status: to, changedAtMs });
      return true;
    },
    async activate(key, changedAtMs) {
      if (versions.get(keyOf(key))?.status !== 'ready') return false;
      for (const [name, each] of versions) {
        if (each.family !== key.family) continue;
        const active = each.version === key.version;
        if (active !== each.active) versions.set(name, { ...each, active, changedAtMs });
      }
      return true;
    },
  };
}
