// Numbers for event types, categories and tenants. The database assigns a number in a separate commit before the
// append, so a reader that sees an event also sees its names. Known numbers are cached.

import { MillraceError } from '../../../foundation/error.ts';
import type { PostgresConnection, Queryable } from '../connection/connection.ts';
import { quoteName } from '../connection/schema.ts';

export interface PostgresNames {
  /** Assigns numbers to the names that have none; returns a lookup for all of them. */
  intern(names: Iterable<string>, transaction?: Queryable): Promise<NameNumbers>;
  /** Records which types occur in which categories, before the first such event is stored. */
  recordPairs(
    pairs: Iterable<readonly [category: number, type: number]>,
    transaction?: Queryable,
  ): Promise<void>;
  /** Reads the types added since the last call. */
  refreshTypes(): Promise<ReadonlyMap<number, KnownType>>;
  /** Returns −1 for an unknown name: no event has it. */
  lookUp(name: string): Promise<number>;
  typeName(id: number): string;
}

/** Returns the number of a name; 0 for undefined. */
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
    throw new MillraceError('STORE_CORRUPT', `table names has no row for '${name}'`);
  };

  return {
    async intern(names, transaction) {
      const missing = [...new Set(names)].filter((name) => !ids.has(name));
      if (missing.length > 0) {
        const rows = await connection.queryOutside(transaction, internSql, [missing]);
        for (const [name, id] of rows) ids.set(String(name), Number(id));
      }
      return numberOf;
    },
    async recordPairs(pairs, transaction) {
      const missing = [...pairs].filter(
        ([category, type]) => !pairsKnown.has(`${category} ${type}`),
      );
      if (missing.length === 0) return;
      const values = [missing.map(([c]) => c), missing.map(([, t]) => t)];
      await connection.queryOutside(transaction, pairsSql, values);
      for (const [category, type] of missing) pairsKnown.add(`${category} ${type}`);
    },
    async refreshTypes() {
      // A lower id may commit after a higher one, so only the count shows every addition.
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
