// The token of a leased row of the bus or the outbox: the number of the row, and of the claim that leased it.

import type { SqlRow } from '../thread/protocol.ts';

export function encodeToken(row: SqlRow): string {
  return `${Number(row['seq'])}.${Number(row['token'])}`;
}

/** An invalid token matches no row. */
export function decodeToken(text: string): { readonly seq: number; readonly token: number } {
  const [, seq, token] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  const isValid = seq !== undefined && token !== undefined && Number(token) > 0;
  return isValid ? { seq: Number(seq), token: Number(token) } : { seq: -1, token: -1 };
}
