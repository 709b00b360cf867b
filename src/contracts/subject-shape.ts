// The hash table below the subject index: all patterns whose wildcards stand in the same places.

import { matchSubject } from './subject-match.ts';

/**
 * Patterns of one shape differ only in their literal tokens. A subject, without the tokens that
 * fall under the wildcards, leads to at most one of them: one probe, however many there are.
 *
 * Open addressing over flat arrays, because at half a million patterns the price of a match is the
 * number of cold cache lines that it touches: here one for the tag, one for the cell and one for
 * the key.
 */
export interface Shape<T> extends ShapeForm {
  size: number;
  /** For each slot 0 if it is empty; else 7 bits of the hash, and `several`. */
  tags: Uint8Array;
  /** Read when entries move, never to match. */
  hashes: Int32Array;
  /** Two for each slot: the key, then its value or (where the tag says `several`) its values. */
  cells: Cell<T>[];
}

export interface ShapeForm {
  /** Without the `>`. */
  readonly tokens: number;
  /** Bit i is set where token i is `*`. */
  readonly stars: number;
  readonly keyKind: KeyKind;
}

/**
 * How a subject is held against a key. Patterns without `*` need only the engine's own comparison,
 * which is far quicker than our walk; the key of `a.b.>` is the beginning that it asks for, `a.b.`.
 */
type KeyKind = 'subject' | 'beginning' | 'pattern';

/** Values with how often each was added. */
type Several<T> = Map<T, number>;
type Cell<T> = string | T | Several<T> | undefined;

interface Entry<T> {
  readonly hash: number;
  readonly key: string;
  readonly value: T;
}

const slotsMin = 8;
const several = 0x80;
const tagBits = 0x7f;

export function createShape<T>({ tokens, stars, keyKind }: ShapeForm): Shape<T> {
  return { tokens, stars, keyKind, size: 0, ...emptySlots<T>(slotsMin) };
}

/** Writes the values that the subject leads to at `found[top]` and on; returns the new top. */
export function collectMatch<T>(
  shape: Shape<T>,
  target: { readonly hash: number; readonly subject: string },
  found: (T | undefined)[],
  top: number,
): number {
  const { tags, cells, keyKind } = shape;
  const { hash, subject } = target;
  const mask = tags.length - 1;
  const tag = tagOf(hash);
  for (let slot = hash & mask; tags[slot] !== 0; slot = (slot + 1) & mask) {
    if (((tags[slot] as number) & tagBits) !== tag) continue;
    // The hash only finds: different keys may share it.
    if (!isMatch(keyKind, cells[2 * slot] as string, subject)) continue;
    // The bit is asked, not the value: looking at that would touch one more cold line.
    if (((tags[slot] as number) & several) === 0) {
      found[top] = cells[2 * slot + 1] as T;
      return top + 1;
    }
    let next = top;
    for (const [value, times] of cells[2 * slot + 1] as Several<T>) {
      for (let i = 0; i < times; i += 1, next += 1) found[next] = value;
    }
    return next;
  }
  return top;
}

function isMatch(kind: KeyKind, key: string, subject: string): boolean {
  if (kind === 'subject') return key === subject;
  return kind === 'beginning' ? subject.startsWith(key) : matchSubject(key, subject);
}

export function addValue<T>(shape: Shape<T>, entry: Entry<T>): void {
  const slot = findKey(shape, entry);
  if (slot === -1) return insert(shape, entry);
  const { tags, cells } = shape;
  const tag = tags[slot] as number;
  const stored = cells[2 * slot + 1];
  const values = (tag & several) === 0 ? new Map([[stored as T, 1]]) : (stored as Several<T>);
  values.set(entry.value, (values.get(entry.value) ?? 0) + 1);
  cells[2 * slot + 1] = values;
  tags[slot] = tag | several;
}

/** Takes one occurrence of the value out; the caller knows that it is in. */
export function removeValue<T>(shape: Shape<T>, entry: Entry<T>): void {
  const slot = findKey(shape, entry);
  const { tags, cells } = shape;
  if (((tags[slot] as number) & several) === 0) return removeSlot(shape, slot);
  const values = cells[2 * slot + 1] as Several<T>;
  const times = values.get(entry.value) ?? 0;
  if (times > 1) values.set(entry.value, times - 1);
  else values.delete(entry.value);
  if (values.size === 0) removeSlot(shape, slot);
}

function findKey<T>(shape: Shape<T>, { hash, key }: Entry<T>): number {
  const { tags, cells } = shape;
  const mask = tags.length - 1;
  const tag = tagOf(hash);
  for (let slot = hash & mask; tags[slot] !== 0; slot = (slot + 1) & mask) {
    if (((tags[slot] as number) & tagBits) === tag && cells[2 * slot] === key) return slot;
  }
  return -1;
}

function insert<T>(shape: Shape<T>, { hash, key, value }: Entry<T>): void {
  const slots = shape.tags.length;
  shape.size += 1;
  if (shape.size * 3 > slots * 2) resize(shape, slots * 2);
  place(shape, { hash, tag: tagOf(hash), key, stored: value });
}

/** Closes the gap by moving later entries up: tombstones would slow a busy table for ever. */
function removeSlot<T>(shape: Shape<T>, slot: number): void {
  const { tags, hashes, cells } = shape;
  const mask = tags.length - 1;
  let gap = slot;
  for (let next = (gap + 1) & mask; tags[next] !== 0; next = (next + 1) & mask) {
    const home = (hashes[next] as number) & mask;
    // An entry may move into the gap unless that lies before its home.
    if (((next - home) & mask) < ((next - gap) & mask)) continue;
    tags[gap] = tags[next] as number;
    hashes[gap] = hashes[next] as number;
    cells[2 * gap] = cells[2 * next];
    cells[2 * gap + 1] = cells[2 * next + 1];
    gap = next;
  }
  tags[gap] = 0;
  cells[2 * gap] = undefined;
  cells[2 * gap + 1] = undefined;

  shape.size -= 1;
  const slots = tags.length;
  if (slots > slotsMin && shape.size * 6 < slots) resize(shape, slots / 2);
}

function resize<T>(shape: Shape<T>, slots: number): void {
  const { tags, hashes, cells } = shape;
  Object.assign(shape, emptySlots<T>(slots));
  for (let slot = 0; slot < tags.length; slot += 1) {
    const tag = tags[slot] as number;
    if (tag === 0) continue;
    const hash = hashes[slot] as number;
    place(shape, { hash, tag, key: cells[2 * slot], stored: cells[2 * slot + 1] });
  }
}

function place<T>(
  shape: Shape<T>,
  entry: { readonly hash: number; readonly tag: number; key: Cell<T>; stored: Cell<T> },
): void {
  const { tags, hashes, cells } = shape;
  const mask = tags.length - 1;
  let slot = entry.hash & mask;
  while (tags[slot] !== 0) slot = (slot + 1) & mask;
  tags[slot] = entry.tag;
  hashes[slot] = entry.hash;
  cells[2 * slot] = entry.key;
  cells[2 * slot + 1] = entry.stored;
}

function emptySlots<T>(slots: number): Pick<Shape<T>, 'tags' | 'hashes' | 'cells'> {
  return {
    tags: new Uint8Array(slots),
    hashes: new Int32Array(slots),
    // oxlint-disable-next-line unicorn/no-new-array -- `Array.from` takes six times as long
    cells: new Array<Cell<T>>(2 * slots).fill(undefined),
  };
}

/** The high bits, since the low ones chose the slot already; never 0, which says empty. */
function tagOf(hash: number): number {
  return hash >>> 25 || 1;
}
