// A batch of appends as the arrays that `append_events` takes, and its rows as outcomes.

import { categoryOf } from '../../store/recorded-event.ts';
import type { ExpectedRevision } from '../../store/expected-revision.ts';
import type { StreamWrite, WriteOutcome } from '../../store/store-engine.ts';
import type { Row } from './postgres-connection.ts';
import type { NameNumbers } from './postgres-names.ts';

/** Writes that succeed or fail together. */
export type Unit = readonly StreamWrite[];

/** `isNew`: whether there may be no row of this stream yet. */
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
  // The same order for every process: it is the order in which the streams are locked.
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
  // An array would have every quotation mark escaped, and JSON is full of them.
  const lines = [payload.join('\n'), meta.join('\n')];
  return [sorted, sorted.some(isNew), ...Object.values(w), ...Object.values(columns), ...lines];
}

/** The one write there is, if it is of the kind that has a faster way. */
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

/** As `append_to_stream` takes it. */
export function encodeWrite(
  { stream, expected, rows }: StreamWrite,
  idOf: NameNumbers,
  isNew: (stream: string) => boolean,
): unknown[] {
  return [
    stream,
    isNew(stream),
    expectedCode(expected),
    idOf(categoryOf(stream)),
    rows.map(({ eventId }) => eventId),
    rows.map(({ type }) => idOf(type)),
    rows.map(({ tenant }) => idOf(tenant === '' ? undefined : tenant)),
    rows.map(({ payload }) => payload).join('\n'),
    rows.map(({ meta }) => meta).join('\n'),
  ];
}

/** As `append_event` takes it: the only row of the write. */
export function encodeEvent(
  { stream, expected, rows }: StreamWrite,
  idOf: NameNumbers,
  isNew: (stream: string) => boolean,
): unknown[] {
  const [row] = rows;
  return [
    stream,
    isNew(stream),
    expectedCode(expected),
    idOf(categoryOf(stream)),
    row?.eventId,
    idOf(row?.type),
    idOf(row?.tenant === '' ? undefined : row?.tenant),
    row?.payload,
    row?.meta,
  ];
}

export function outcomesOf(units: readonly Unit[], rows: readonly Row[]): WriteOutcome[][] {
  let next = 0;
  return units.map((unit) =>
    unit.map(() => {
      const row = rows[next] ?? [];
      // `append_event` answers with one text.
      const [kind, revision, sequence] = row.length === 1 ? String(row[0]).split(',') : row;
      next += 1;
      return toOutcome(String(kind), Number(revision), Number(sequence));
    }),
  );
}

function toOutcome(kind: string, revision: number, sequence: number): WriteOutcome {
  if (kind === 'conflict') return { kind, actual: revision };
  if (kind === 'deleted') return { kind };
  if (kind === 'repeated') return { kind, revision, sequence };
  // 'withdrawn': another write of the unit was refused, which its own outcome tells.
  return { kind: 'appended', revision, sequence };
}

function expectedCode(expected: ExpectedRevision): number {
  if (typeof expected === 'number') return expected;
  return { any: -2, none: -1, exists: -4 }[expected];
}
