// What follows from a schema's name: how it is quoted, and its place among the advisory locks.

import { createHash } from 'node:crypto';

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Advisory locks share one space per database: each schema has two numbers of its own in it. This
 * one, always even, is for appends under way; the next one for sleeping readers (1) and migrations (2).
 */
export function lockClass(schema: string): number {
  return createHash('sha256').update(`millrace ${schema}`).digest().readInt32BE(0) & 0x7ffffffe;
}
