// The versions of read models: one document for each family, because one version of a family is active.

import type { Db } from 'mongodb';
import type {
  ReadModelVersion,
  ReadModelVersions,
  VersionStatus,
} from '../../projections/read-model-versions.ts';
import { parsePosition } from '../../store/position.ts';
import { derivedOptions } from './collections.ts';
import { isDuplicate, translated } from './connection.ts';

interface StoredVersion {
  readonly version: number;
  readonly projection: string;
  readonly status: VersionStatus;
  readonly target: string | null;
  readonly changedAtMs: number;
}

interface FamilyDocument {
  /** The family. */
  readonly _id: string;
  readonly active: number;
  readonly versions: readonly StoredVersion[];
  /** The number of changes: a change of another process in between is repeated. */
  readonly changes: number;
}

type Change = (family: FamilyDocument) => Partial<FamilyDocument> | undefined;

export function mongodbReadModelVersions(db: Db): ReadModelVersions {
  const families = db.collection<FamilyDocument>('read_model_versions', derivedOptions);

  /** Returns undefined, without a change, if `change` returns undefined. */
  async function changing(family: string, change: Change): Promise<FamilyDocument | undefined> {
    for (;;) {
      const found = await families.findOne({ _id: family });
      const before = found ?? { _id: family, active: 0, versions: [], changes: 0 };
      const changes = change(before);
      if (changes === undefined) return undefined;
      const next = { ...before, ...changes, changes: before.changes + 1 };
      if (found !== null) {
        const { _id, ...fields } = next;
        const unchanged = { _id, changes: before.changes };
        if ((await families.updateOne(unchanged, { $set: fields })).matchedCount > 0) return next;
        continue;
      }
      try {
        await families.insertOne(next);
        return next;
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
    }
  }

  return translated<ReadModelVersions>({
    async declare({ family, version, projection, target }, nowMs) {
      const declared: StoredVersion = {
        version,
        projection,
        status: 'building',
        target: target ?? null,
        changedAtMs: nowMs,
      };
      await changing(family, ({ versions, active }) =>
        versions.some((each) => each.version === version)
          ? undefined
          : {
              versions: [...versions, declared].toSorted((a, b) => a.version - b.version),
              active: versions.length === 0 ? version : active,
            },
      );
      const stored = await families.findOne({ _id: family });
      return versionsIn(stored).find((each) => each.version === version) as ReadModelVersion;
    },
    async list(family) {
      if (family !== undefined) return versionsIn(await families.findOne({ _id: family }));
      return (await families.find().sort({ _id: 1 }).toArray()).flatMap(versionsIn);
    },
    async setStatus({ family, version }, { from, to }, nowMs) {
      const changed = await changing(family, ({ versions }) => {
        const before = versions.find((each) => each.version === version);
        if (before === undefined || !from.includes(before.status)) return undefined;
        const after = { ...before, status: to, changedAtMs: nowMs };
        return { versions: versions.map((each) => (each === before ? after : each)) };
      });
      return changed !== undefined;
    },
    async activate({ family, version }, nowMs) {
      const changed = await changing(family, ({ versions, active }) => {
        const isReady = versions.some(
          (each) => each.version === version && each.status === 'ready',
        );
        if (!isReady) return undefined;
        const isSwitched = (each: StoredVersion): boolean =>
          version !== active && (each.version === version || each.version === active);
        return {
          active: version,
          versions: versions.map((each) =>
            isSwitched(each) ? { ...each, changedAtMs: nowMs } : each,
          ),
        };
      });
      return changed !== undefined;
    },
  });
}

function versionsIn(family: FamilyDocument | null): readonly ReadModelVersion[] {
  return (family?.versions ?? []).map(({ target, ...version }) => ({
    ...version,
    family: family?._id ?? '',
    active: family?.active === version.version,
    target: target === null ? undefined : parsePosition(target),
  }));
}
