// Encodes appends as the parameters of the append functions, and decodes their rows into outcomes.

import { categoryOf } from '../../../store/stream-category.ts';
import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import type { StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';
import type { Row } from '../connection/connection.ts';
import type { NameNumbers } from './names.ts';

/** Writes that succeed or fail together. */
export type Unit = readonly StreamWrite[];

/** The parameters of `append_events`. `isNew`: the stream may have no row yet. */
export function encodeUnits(
  units: readonly Unit[],
  idOf: NameNumbers,
  isNew: (stream: string) => boolean,
): unknown[] {
  const streams = new Set<string>();
  for (const unit of units) {
    for (const { stream, retention } of unit) {
      streams.add(stream);
      if (retention !== undefined) streams.add(retention.of);
    }
  }
  // Every process uses the same order, because streams are locked in this order.
  const sorted = [...streams].toSorted();
  const slots = new Map(sorted.map((stream, index) => [stream, index + 1]));
  const slotOf = (stream: string): number => slots.get(stream) ?? 0;

  const w = {
    unit: [] as number[],
    slot: [] as number[],
    expected: [] as number[],
    first: [] as number[],
    count: [] as number[],
    category: [] as number[],
    tombstone: [] as boolean[],
    retain: [] as (number | null)[],
    retainExpected: [] as (number | null)[],
    truncate: [] as (number | null)[],
    maxCount: [] as (number | null)[],
    maxAge: [] as (number | null)[],
  };
  const e = {
    write: [] as number[],
    id: [] as string[],
    type: [] as number[],
    tenant: [] as number[],
    payload: [] as string[],
    meta: [] as string[],
  };
  for (const [index, unit] of units.entries()) {
    for (const { stream, expected, rows, retention, tombstone } of unit) {
      w.unit.push(index);
      w.slot.push(slotOf(stream));
      w.expected.push(expectedCode(expected));
      w.first.push(e.id.length + 1);
      w.count.push(rows.length);
      w.category.push(idOf(categoryOf(stream)));
      w.tombstone.push(tombstone === true);
      w.retain.push(retention === undefined ? null : slotOf(retention.of));
      w.retainExpected.push(
        retention === undefined ? null : expectedCode(retention.expected ?? 'any'),
      );
      w.truncate.push(retention?.values.truncateBefore ?? null);
      w.maxCount.push(retention?.values.maxCount ?? null);
      w.maxAge.push(retention?.values.maxAgeSeconds ?? null);
      for (const row of rows) {
        e.write.push(w.slot.length);
        e.id.push(row.eventId);
        e.type.push(idOf(row.type));
        e.tenant.push(idOf(row.tenant === '' ? undefined : row.tenant));
        e.payload.push(row.payload);
        e.meta.push(row.meta);
      }
    }
  }
  const { payload, meta, ...columns } = e;
  // Join payloads by line breaks: in an array, every quotation mark of the JSON would have to be escaped.
  const lines = [payload.join('\n'), meta.join('\n')];
  return [sorted, sorted.some(isNew), ...Object.values(w), ...Object.values(columns), ...lines];
}

/** Returns the only write, if `append_to_stream` or `append_event` can run it. */
export function plainWrite(units: readonly Unit[]): StreamWrite | undefined {
  const [unit] = units;
  const [write] = unit ?? [];
  const isPlain =
    units.length === 1 &&
    unit?.length === 1 &&
    write?.retention === undefined &&
    write?.tombstone !== true;
  return isPlain ? write : undefined;
}

/** The parameters of `append_to_stream`. */
export function encodeWrite(
  write: StreamWrite,
  idOf: NameNumbers,
  isNew: (stream: string) => boolean,
): unknown[] {
  const { rows } = write;
  return [
    ...streamParameters(write, idOf, isNew),
    rows.map(({ eventId }) => eventId),
    rows.map(({ type }) => idOf(type)),
    rows.map(({ tenant }) => idOf(tenant === '' ? undefined : tenant)),
    rows.map(({ payload }) => payload).join('\n'),
    rows.map(({ meta }) => meta).join('\n'),
  ];
}

/** The parameters of `append_event`, for a write with one row. */
export function encodeEvent(
  write: StreamWrite,
  idOf: NameNumbers,
  isNew: (stream: string) => boolean,
): unknown[] {
  const [row] = write.rows;
  return [
    ...streamParameters(write, idOf, isNew),
    row?.eventId,
    idOf(row?.type),
    idOf(row?.tenant === '' ? undefined : row?.tenant),
    row?.payload,
    row?.meta,
  ];
}

function streamParameters(
  { stream, expected }: StreamWrite,
  idOf: NameNumbers,
  isNew: (stream: string) => boolean,
): unknown[] {
  return [stream, isNew(stream), expectedCode(expected), idOf(categoryOf(stream))];
}

export function outcomesOf(units: readonly Unit[], rows: readonly Row[]): WriteOutcome[][] {
  let next = 0;
  return units.map((unit) =>
    unit.map(() => {
      const row = rows[next] ?? [];
      // `append_event` returns one string instead of three columns.
      const [kind, revision, sequence] = row.length === 1 ? String(row[0]).split(',') : row;
      next += 1;
      return toOutcome(String(kind), Number(revision), Number(sequence));
    }),
  );
}

function toOutcome(kind: string, revision: number, sequence: number): WriteOutcome {
  if (kind === 'conflict') return { kind, actual: revision };
  if (kind === 'deleted') return { kind };
  // The database functions return the word 'repeated' for a duplicate.
  if (kind === 'repeated') return { kind: 'duplicate', revision, sequence };
  // A write with the outcome 'withdrawn' was undone: the rejected write of its unit reports the failure.
  return { kind: 'appended', revision, sequence };
}

function expectedCode(expected: ExpectedRevision): number {
  if (typeof expected === 'number') return expected;
  return { any: -2, none: -1, exists: -4 }[expected];
}
