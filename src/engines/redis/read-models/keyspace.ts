// The keys of one tenant and model, and the names of indexes, sets, ranges and cached lists that this process
// has seen there.

import { redisKeys, type RedisMeta } from '../../../contracts/redis-keys.ts';
import { shapeOf, type DocumentShape } from './document.ts';
import type { DocumentWrite, ModelKey } from '../../../projections/read-model-store.ts';

/** `i`: index. `s`: set. `z`: range (sorted set). `l`: cached list. */
type NameKind = 'i' | 's' | 'z' | 'l';

export interface ReadModelKeyspace {
  readonly tenant: string;
  readonly shape: DocumentShape;
  meta(what: RedisMeta): string;
  document(id: string): string;
  named(kind: NameKind, name: string): string;
}

export function readModelKeyspace(
  { bc, aggregate, version, layout }: ModelKey,
  tenant: string,
  defaultShape: 'json' | 'hash',
): ReadModelKeyspace {
  const build = {
    i: redisKeys.index,
    s: redisKeys.set,
    z: redisKeys.zset,
    l: redisKeys.listOf,
  } as const;
  const shape = shapeOf({ layout }, defaultShape);
  const document = defaultShape === 'json' ? redisKeys.snapshot : redisKeys.hash;
  const customKey = (kind: NameKind, name: string): string | undefined => {
    if (kind === 's') return layout?.set?.(tenant, name);
    return kind === 'z' ? layout?.range?.(tenant, name) : undefined;
  };
  return {
    tenant,
    shape,
    meta: (what) => redisKeys.meta(tenant, bc, aggregate, version, what),
    document: (id) => layout?.document(tenant, id) ?? document(tenant, bc, aggregate, version, id),
    named: (kind, name) =>
      customKey(kind, name) ?? build[kind](tenant, bc, aggregate, version, name),
  };
}

/** The names whose keys a write must declare: those of its new entries and of the entries that it removes. */
export interface KnownNames {
  note(writes: readonly DocumentWrite[]): void;
  /** Takes the missing names as the script returns them: the kind, followed by the name. */
  add(missing: readonly string[]): void;
  /** The names in the form that the script reads, and their keys in the same order. */
  declare(keyspace: ReadModelKeyspace): { readonly json: string; readonly keys: readonly string[] };
}

/** Names of lists and grouped sets are temporary, so they are declared for one call only. */
export function knownNames(lasting: ReadonlyMap<NameKind, Set<string>>): KnownNames {
  const temporary = lastingNames();
  const add = (kind: NameKind, name: string): void => {
    const names = kind === 'l' || name.includes(':') ? temporary : lasting;
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
    declare(keyspace) {
      const kinds = ['i', 's', 'z', 'l'] as const;
      const names = kinds.map(
        (kind) => [kind, [...(lasting.get(kind) ?? []), ...(temporary.get(kind) ?? [])]] as const,
      );
      return {
        json: JSON.stringify(Object.fromEntries(names)),
        keys: names.flatMap(([kind, own]) => own.map((name) => keyspace.named(kind, name))),
      };
    },
  };
}

/** Creates the names that all tenants of a model share; a model definition has a few dozen names at most. */
export function lastingNames(): ReadonlyMap<NameKind, Set<string>> {
  return new Map([
    ['i', new Set<string>()],
    ['s', new Set<string>()],
    ['z', new Set<string>()],
    ['l', new Set<string>()],
  ]);
}
