// A plain append is sent to the writer thread as one string, and its outcome returns as four numbers. The cost of a
// copy between threads grows with the number of values.

import type { ExpectedRevision } from '../../../store/expected-revision.ts';
import type { RowToWrite, StreamWrite, WriteOutcome } from '../../../store/store-engine.ts';

/** An append of events to one stream, without metadata: nearly all appends are plain. */
export interface PlainAppend {
  readonly id: number;
  readonly nowMs: number;
  readonly write: StreamWrite;
}

export function isPlain(writes: readonly StreamWrite[]): writes is readonly [StreamWrite] {
  const [write] = writes;
  return (
    writes.length === 1 &&
    write !== undefined &&
    write.retention === undefined &&
    write.tombstone === undefined
  );
}

/** A length of −1 means: the value equals that of the previous row. */
const sameAsPrevious = -1;
const expectedNumbers = { none: -1, any: -2, exists: -3 } as const;

/** The string begins with the lengths of its parts, so several strings can be joined. */
export function packAppend({ id, nowMs, write }: PlainAppend): string {
  const { stream, expected, rows, follows = '' } = write;
  const expectedNumber = typeof expected === 'number' ? expected : expectedNumbers[expected];
  let lengths = `${id},${nowMs},${expectedNumber},${follows.length},${stream.length},${rows.length},`;
  let cells = follows + stream;
  let before: RowToWrite | undefined;
  for (const row of rows) {
    const { eventId, payload, meta } = row;
    // Write type and tenant once for consecutive rows with the same values.
    const isSame = row.type === before?.type && row.tenant === before.tenant;
    const [type, tenant] = isSame ? ['', ''] : [row.type, row.tenant];
    lengths += `${eventId.length},${isSame ? sameAsPrevious : type.length},${tenant.length},${payload.length},${meta.length},`;
    cells += eventId + type + tenant + payload + meta;
    before = row;
  }
  return lengths + cells;
}

const [comma, minus, zero] = [44, 45, 48] as const;

export function unpackAppends(text: string): PlainAppend[] {
  let at = 0;
  const number = (): number => {
    const isNegative = text.charCodeAt(at) === minus;
    if (isNegative) at += 1;
    let value = 0;
    for (let code = text.charCodeAt(at); code !== comma; code = text.charCodeAt(at)) {
      value = value * 10 + code - zero;
      at += 1;
    }
    at += 1;
    return isNegative ? -value : value;
  };
  const cell = (length: number): string => {
    const value = text.slice(at, at + length);
    at += length;
    return value;
  };
  const appends: PlainAppend[] = [];
  while (at < text.length) {
    const [id, nowMs, expected] = [number(), number(), expectedOf(number())];
    const followsLength = number();
    const streamLength = number();
    const count = number() * 5;
    const lengths: number[] = [];
    while (lengths.length < count) lengths.push(number());
    const follows = cell(followsLength);
    const stream = cell(streamLength);
    const rows: RowToWrite[] = [];
    let [type, tenant] = ['', ''];
    for (let next = 0; next < count; next += 5) {
      const eventId = cell(lengths[next] ?? 0);
      if (lengths[next + 1] !== sameAsPrevious) {
        type = cell(lengths[next + 1] ?? 0);
        tenant = cell(lengths[next + 2] ?? 0);
      }
      const payload = cell(lengths[next + 3] ?? 0);
      const meta = cell(lengths[next + 4] ?? 0);
      rows.push({ eventId, type, tenant, payload, meta });
    }
    const optional = follows === '' ? {} : { follows };
    appends.push({ id, nowMs, write: { stream, expected, rows, ...optional } });
  }
  return appends;
}

function expectedOf(number: number): ExpectedRevision {
  if (number >= 0) return number;
  return number === expectedNumbers.none
    ? 'none'
    : number === expectedNumbers.any
      ? 'any'
      : 'exists';
}

const kinds = ['appended', 'duplicate', 'conflict', 'deleted'] as const;
export const outcomeNumbers = 4;

/** Adds the id of the append, the kind of the outcome, and two numbers whose meaning depends on the kind. */
export function packOutcome(id: number, outcome: WriteOutcome, into: number[]): void {
  const kind = kinds.indexOf(outcome.kind);
  if (outcome.kind === 'deleted') into.push(id, kind, 0, 0);
  else if (outcome.kind === 'conflict') into.push(id, kind, outcome.actual, 0);
  else into.push(id, kind, outcome.revision, outcome.sequence);
}

export function unpackOutcome(packed: readonly number[], at: number): WriteOutcome {
  const kind = kinds[packed[at + 1] ?? 0] ?? 'deleted';
  const [first = 0, second = 0] = [packed[at + 2], packed[at + 3]];
  if (kind === 'deleted') return { kind };
  if (kind === 'conflict') return { kind, actual: first };
  return { kind, revision: first, sequence: second };
}
