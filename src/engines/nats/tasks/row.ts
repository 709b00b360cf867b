// A row is a job in the bucket: one message whose first line holds the head and the lengths of the fields that follow.
// Large fields are separate messages (values), which the row refers to by sequence.

import { parseStored } from '../../../foundation/parse-json.ts';
import { damagedHead, type TaskHead, taskTypeOf } from '../../../tasks/task-job.ts';
import { damagedField } from '../../../tasks/task-record.ts';

/** Fields in a separate message of the bucket. */
export interface TaskValue {
  readonly seq: number;
  readonly names: readonly string[];
}

export interface TaskRow {
  readonly head: TaskHead;
  /** Name and length of each field, in the order of the body. */
  readonly inline: readonly (readonly [string, number])[];
  /** Undefined if the body is not in memory and must be read from the bucket. */
  readonly body: string | undefined;
  readonly values: readonly TaskValue[];
}

/** A row with its sequence in the bucket. */
export interface StoredTaskRow extends TaskRow {
  readonly seq: number;
}

/** The fields of a head in the order of the row; id and type are in the key. */
const headFields = [
  'tenant',
  'state',
  'revision',
  'fence',
  'priority',
  'dueAtMs',
  'concurrencyKey',
  'failures',
  'worker',
  'deadlineMs',
  'cancelAtMs',
  'parentId',
  'labels',
  'enqueuedAtMs',
  'claimedAtMs',
  'updatedAtMs',
  'endedAtMs',
] as const satisfies readonly Exclude<keyof TaskHead, 'id' | 'type'>[];

type FirstLine = readonly [
  version: 1,
  head: readonly unknown[],
  inline: readonly (readonly [string, number])[],
  values: readonly (readonly [number, readonly string[]])[],
];

export function encodeRow({ head, inline, body, values }: TaskRow): string {
  const references = values.map(({ seq, names }) => [seq, names] as const);
  const line: FirstLine = [1, headFields.map((name) => head[name]), inline, references];
  return `${JSON.stringify(line)}\n${body ?? ''}`;
}

/** A damaged row becomes a due job, which the next claim fails; its text stays in the row. */
export function decodeRow(id: string, text: string): TaskRow {
  const end = text.indexOf('\n');
  const line = parseStored(text.slice(0, end));
  if (!isFirstLine(line))
    return { head: damagedHead(id), ...packFields({ [damagedField]: text }), values: [] };
  const [, head, inline, values] = line;
  return {
    head: {
      ...(Object.fromEntries(headFields.map((name, at) => [name, head[at]])) as Pick<
        TaskHead,
        (typeof headFields)[number]
      >),
      id,
      type: taskTypeOf(id),
    },
    inline,
    body: text.slice(end + 1),
    values: values.map(([seq, names]) => ({ seq, names })),
  };
}

function isFirstLine(line: unknown): line is FirstLine {
  return Array.isArray(line) && line[0] === 1 && line.slice(1, 4).every(Array.isArray);
}

/** Returns the fields that the row itself contains. */
export function inlineFields({ inline, body = '' }: TaskRow): Record<string, string> {
  let at = 0;
  return Object.fromEntries(
    inline.map(([name, length]) => [name, body.slice(at, (at += length))] as const),
  );
}

export function packFields(
  texts: Readonly<Record<string, string>>,
): Pick<TaskRow, 'inline' | 'body'> {
  const entries = Object.entries(texts);
  return {
    inline: entries.map(([name, text]) => [name, text.length] as const),
    body: entries.map(([, text]) => text).join(''),
  };
}

/** A field of at least this many characters becomes a separate message. */
const separateFrom = 16_000;
/** Limits the total length of all other fields, because every step writes them again. */
const inlineMax = 64_000;
/** Fields that are never separate, because every list reads them. */
const alwaysInline: ReadonlySet<string> = new Set(['info', 'run']);

/** Decides which fields are inline and which are separate. Each record of `separate` becomes a message. */
export function splitFields(texts: Readonly<Record<string, string>>): {
  readonly inline: Readonly<Record<string, string>>;
  readonly separate: readonly Readonly<Record<string, string>>[];
} {
  const inline: Record<string, string> = {};
  const separate: Record<string, string>[] = [];
  let left = 0;
  for (const [name, text] of Object.entries(texts)) {
    if (text.length >= separateFrom) {
      separate.push({ [name]: text });
    } else {
      inline[name] = text;
      left += text.length;
    }
  }
  if (left <= inlineMax) return { inline, separate };
  const others = Object.entries(inline).filter(([name]) => !alwaysInline.has(name));
  for (const [name] of others) delete inline[name];
  return { inline, separate: [...separate, Object.fromEntries(others)] };
}
