// What Redis keeps of a document beside itself: which event it came from, and everything that it is
// found by, so that a later write can remove what no longer holds. Texts only: Lua's numbers are
// written with fewer digits than they have.

import type { DocumentEntries, DocumentWrite } from '../../projections/read-model-store.ts';

interface FenceText {
  /** Stream, revision. */
  readonly t: string;
  readonly r: string;
  /** Whether there is a document; it may have been removed. */
  readonly d: '1' | '0';
  readonly i: Readonly<Record<string, string>>;
  readonly s: readonly string[];
  readonly z: Readonly<Record<string, string>>;
}

export interface DocumentFence {
  readonly stream: string;
  readonly revision: number;
  readonly exists: boolean;
  readonly entries: DocumentEntries;
}

export function encodeFence({ stream, revision, document, entries }: DocumentWrite): string {
  return JSON.stringify({
    t: stream,
    r: String(revision),
    d: document === null ? '0' : '1',
    i: entries.indexes,
    s: entries.sets,
    z: Object.fromEntries(Object.entries(entries.ranges).map(([name, at]) => [name, String(at)])),
  } satisfies FenceText);
}

export function decodeFence(text: string): DocumentFence {
  const { t, r, d, i, s, z } = JSON.parse(text) as FenceText;
  const scores = Object.entries(z).map(([name, at]) => [name, Number(at)] as const);
  return {
    stream: t,
    revision: Number(r),
    exists: d === '1',
    entries: { indexes: i, sets: s, ranges: Object.fromEntries(scores) },
  };
}
