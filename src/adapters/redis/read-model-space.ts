// One tenant's part of one model: its keys, and the names of indexes, sets, ranges and cached lists
// that this process has met there.

import { redisKeys, type RedisMeta } from '../../contracts/redis-keys.ts';
import { shapeOf, type DocumentShape } from './document-text.ts';
import type { DocumentWrite, ModelKey } from '../../projections/read-model-store.ts';

/** Indexes, sets, ranges (zsets) and lists. */
type NameKind = 'i' | 's' | 'z' | 'l';

export interface ReadModelSpace {
  readonly tenant: string;
  readonly shape: DocumentShape;
  meta(what: RedisMeta): string;
  document(id: string): string;
  named(kind: NameKind, name: string): string;
}

export function readModelSpace(
  { bc, aggregate, version, layout }: ModelKey,
  tenant: string,
  usual: 'json' | 'hash',
): ReadModelSpace {
  const build = {
    i: redisKeys.index,
    s: redisKeys.set,
    z: redisKeys.zset,
    l: redisKeys.listOf,
  } as const;
  const shape = shapeOf({ layout }, usual);
  const document = usual === 'json' ? redisKeys.snapshot : redisKeys.hash;
  const elsewhere = (kind: NameKind, name: string): string | undefined => {
    if (kind === 's') return layout?.set?.(tenant, name);
    return kind === 'z' ? layout?.range?.(tenant, name) : undefined;
  };
  return {
    tenant,
    shape,
    meta: (what) => redisKeys.meta(tenant, bc, aggregate, version, what),
    document: (id) => layout?.document(tenant, id) ?? document(tenant, bc, aggregate, version, id),
    named: (kind, name) =>
      elsewhere(kind, name) ?? build[kind](tenant, bc, aggregate, version, name),
  };
}

/** What a write has to declare: of its own entries, and of those that are to be removed. */
export interface KnownNames {
  note(writes: readonly DocumentWrite[]): void;
  /** As the script tells of those that it misses: the kind, and the name behind it. */
  add(missing: readonly string[]): void;
  /** The names as the script reads them, and their keys in the same order. */
  declare(space: ReadModelSpace): { readonly json: string; readonly keys: readonly string[] };
}

/** Lists and groups come and go: those that are met are declared for one call. */
export function knownNames(lasting: ReadonlyMap<NameKind, Set<string>>): KnownNames {
  const passing = lastingNames();
  const add = (kind: NameKind, name: string): void => {
    const names = kind === 'l' || name.includes(':') ? passing : lasting;
    names.get(kind)?.add(name);
  };
  return {
    note(writes) {
      for (const { entries } of writes) {
        for (const name of Object.keys(entries.indexes)) add('i', name);
        for (const name of entries.sets) add('s', name);
        for (const name of Object.keys(entries.ranges)) add('z', name);
      }
    },
    add(missing) {
      for (const each of missing) add(each.slice(0, 1) as NameKind, each.slice(1));
    },
    declare(space) {
      const kinds = ['i', 's', 'z', 'l'] as const;
      const names = kinds.map(
        (kind) => [kind, [...(lasting.get(kind) ?? []), ...(passing.get(kind) ?? [])]] as const,
      );
      return {
        json: JSON.stringify(Object.fromEntries(names)),
        keys: names.flatMap(([kind, own]) => own.map((name) => space.named(kind, name))),
      };
    },
  };
}

/** Of all tenants of a model: a definition has a few dozen names at most. */
export function lastingNames(): ReadonlyMap<NameKind, Set<string>> {
  return new Map([
    ['i', new Set<string>()],
    ['s', new Set<string>()],
    ['z', new Set<string>()],
    ['l', new Set<string>()],
  ]);
}
