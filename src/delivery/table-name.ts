// Names of tables that a user chooses: checked, as they become part of SQL.

import { MillraceError } from '../foundation/error.ts';

export interface TableName {
  /** To stand in SQL. */
  readonly quoted: string;
  /** Without its schema, to name an index after it. */
  readonly bare: string;
}

/** `table` or `schema.table`, in lower case. Throws `CONFIG_INVALID`. */
export function tableName(text: string): TableName {
  if (!/^[a-z_][a-z0-9_]{0,50}(\.[a-z_][a-z0-9_]{0,50})?$/.test(text)) {
    throw new MillraceError('CONFIG_INVALID', `'${text}' is not the name of a table in lower case`);
  }
  const parts = text.split('.');
  return { quoted: parts.map((part) => `"${part}"`).join('.'), bare: parts.at(-1) ?? text };
}
