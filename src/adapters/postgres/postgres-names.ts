// Numbers for types, categories and tenants: known ones from memory, new ones from the database, in
// a commit of their own, so that whoever sees an event finds the names of it.

import { MillraceError } from '../../foundation/error.ts';
import type { PostgresConnection, Queryable } from './postgres-connection.ts';
import { quoteName } from './postgres-schema.ts';

export interface PostgresNames {
  /** Of names that were interned before. */
  readonly numberOf: NameNumbers;
  /** The numbers of all of them; those who have none get one. */
  intern(names: Iterable<string>, transaction?: Queryable): Promise<NameNumbers>;
  /** Notes that types occur in categories, before the first such event does. */
  notePairs(
    pairs: Iterable<readonly [category: number, type: number]>,
    transaction?: Queryable,
  ): Promise<void>;
  /** Reads the types that were added since the last time. */
  refreshTypes(): Promise<ReadonlyMap<number, KnownType>>;
  /** −1: there is no such name, and so no event with it. */
  lookUp(name: string): Promise<number>;
  typeName(id: number): string;
}

/** 0 stands for none. */
export type NameNumbers = (name: string | undefined) => number;

interface KnownType {
  readonly name: string;
  readonly categories: Set<number>;
}

export function createPostgresNames(connection: PostgresConnection, schema: string): PostgresNames {
  const at = quoteName(schema);
  const internSql = {
    name: `${schema} intern`,
    text: `select name, id from ${at}.intern_names($1)`,
  };
  const pairsSql = {
    name: `${schema} pairs`,
    text: `insert into ${at}.category_types (category_id, type_id)
           select * from unnest($1::integer[], $2::integer[]) order by 1, 2 on conflict do nothing`,
  };
  const typesSql = {
    name: `${schema} types`,
    text: `select p.id, p.category_id, p.type_id, n.name from ${at}.category_types p
           join ${at}.names n on n.id = p.type_id order by p.id`,
  };
  const countSql = {
    name: `${schema} types count`,
    text: `select count(*) from ${at}.category_types`,
  };
  const lookUpSql = { name: `${schema} name`, text: `select id from ${at}.names where name = $1` };
  const ids = new Map<string, number>();
  const pairsKnown = new Set<string>();
  const types = new Map<number, KnownType>();
  let pairsRead = 0;

  const numberOf: NameNumbers = (name) => {
    if (name === undefined) return 0;
    const id = ids.get(name);
    if (id !== undefined) return id;
    throw new MillraceError('STORE_CORRUPT', `the database has no number for '${name}'`);
  };

  return {
    numberOf,
    async intern(names, transaction) {
      const missing = [...new Set(names)].filter((name) => !ids.has(name));
      if (missing.length > 0) {
        const rows = await connection.queryBeside(internSql, [missing], transaction);
        for (const [name, id] of rows) ids.set(String(name), Number(id));
      }
      return numberOf;
    },
    async notePairs(pairs, transaction) {
      const missing = [...pairs].filter(
        ([category, type]) => !pairsKnown.has(`${category} ${type}`),
      );
      if (missing.length === 0) return;
      const values = [missing.map(([c]) => c), missing.map(([, t]) => t)];
      await connection.queryBeside(pairsSql, values, transaction);
      for (const [category, type] of missing) pairsKnown.add(`${category} ${type}`);
    },
    async refreshTypes() {
      // Numbers are given out before their commit, so the count tells what the highest would not.
      const [[count] = []] = await connection.query(countSql, []);
      if (Number(count) === pairsRead) return types;
      const rows = await connection.query(typesSql, []);
      for (const [, category, type, name] of rows) {
        const known = types.get(Number(type)) ?? { name: String(name), categories: new Set() };
        known.categories.add(Number(category));
        types.set(Number(type), known);
      }
      pairsRead = rows.length;
      return types;
    },
    async lookUp(name) {
      const known = ids.get(name);
      if (known !== undefined) return known;
      const [[id] = []] = await connection.query(lookUpSql, [name]);
      return id === undefined ? -1 : Number(id);
    },
    typeName: (id) => types.get(id)?.name ?? '',
  };
}
