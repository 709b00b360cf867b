// Table names chosen by users: validated, because they become part of SQL.

import { MillraceError } from '../foundation/error.ts';

export interface TableName {
  /** Quoted for SQL. */
  readonly quoted: string;
  /** Without its schema, for names of indexes. */
  readonly bare: string;
}

/** `table` or `schema.table`, in lower case. Throws `CONFIG_INVALID`. */
export function tableName(text: string): TableName {
  if (!/^[a-z_][a-z0-9_]{0,50}(\.[a-z_][a-z0-9_]{0,50})?$/.test(text)) {
    throw new MillraceError(
      'CONFIG_INVALID',
      `invalid table name '${text}': use 'table' or 'schema.table' in lower case`,
    );
  }
  const parts = text.split('.');
  return { quoted: parts.map((part) => `"${part}"`).join('.'), bare: parts.at(-1) ?? text };
}
