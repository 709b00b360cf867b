// A job in the bucket: one message, whose first line holds the head and the lengths of the texts that follow. Large texts
// are separate messages (values), which the row refers to by sequence.

import type { TaskHead, TaskState } from '../../../tasks/task-job.ts';
import { taskTypeOf } from '../../../tasks/task-job.ts';

/** Texts in a separate message of the bucket. */
export interface TaskValue {
  readonly seq: number;
  readonly names: readonly string[];
}

export interface TaskRow {
  readonly head: TaskHead;
  /** Name and length of each text, in the order of the body. */
  readonly inline: readonly (readonly [string, number])[];
  /** Undefined: not in memory, read it from the bucket. */
  readonly body: string | undefined;
  readonly values: readonly TaskValue[];
}

/** A row with its sequence in the bucket. */
export interface PlacedRow extends TaskRow {
  readonly seq: number;
}

type HeadArray = readonly [
  tenant: string,
  state: TaskState,
  revision: number,
  fence: number,
  priority: number,
  dueAtMs: number,
  concurrencyKey: string,
  failures: number,
  worker: string,
  deadlineMs: number,
  cancelAtMs: number,
  parentId: string,
  labels: readonly string[],
  enqueuedAtMs: number,
  claimedAtMs: number,
  updatedAtMs: number,
  endedAtMs: number,
];

type FirstLine = readonly [
  version: 1,
  head: HeadArray,
  inline: readonly (readonly [string, number])[],
  values: readonly (readonly [number, readonly string[]])[],
];

export function encodeRow({ head, inline, body, values }: TaskRow): string {
  const array: HeadArray = [
    head.tenant,
    head.state,
    head.revision,
    head.fence,
    head.priority,
    head.dueAtMs,
    head.concurrencyKey,
    head.failures,
    head.worker,
    head.deadlineMs,
    head.cancelAtMs,
    head.parentId,
    head.labels,
    head.enqueuedAtMs,
    head.claimedAtMs,
    head.updatedAtMs,
    head.endedAtMs,
  ];
  const places = values.map(({ seq, names }) => [seq, names] as const);
  const line: FirstLine = [1, array, inline, places];
  return `${JSON.stringify(line)}\n${body ?? ''}`;
}

export function decodeRow(id: string, text: string): TaskRow {
  const end = text.indexOf('\n');
  const [, head, inline, values] = JSON.parse(text.slice(0, end)) as FirstLine;
  return {
    head: {
      id,
      type: taskTypeOf(id),
      tenant: head[0],
      state: head[1],
      revision: head[2],
      fence: head[3],
      priority: head[4],
      dueAtMs: head[5],
      concurrencyKey: head[6],
      failures: head[7],
      worker: head[8],
      deadlineMs: head[9],
      cancelAtMs: head[10],
      parentId: head[11],
      labels: head[12],
      enqueuedAtMs: head[13],
      claimedAtMs: head[14],
      updatedAtMs: head[15],
      endedAtMs: head[16],
    },
    inline,
    body: text.slice(end + 1),
    values: values.map(([seq, names]) => ({ seq, names })),
  };
}

/** The texts in the row itself. */
export function inlineTexts({ inline, body = '' }: TaskRow): Record<string, string> {
  let at = 0;
  return Object.fromEntries(
    inline.map(([name, length]) => [name, body.slice(at, (at += length))] as const),
  );
}

export function withTexts(
  texts: Readonly<Record<string, string>>,
): Pick<TaskRow, 'inline' | 'body'> {
  const entries = Object.entries(texts);
  return {
    inline: entries.map(([name, text]) => [name, text.length] as const),
    body: entries.map(([, text]) => text).join(''),
  };
}

/** A text of at least this many characters is a separate message. */
const separateFrom = 16_000;
/** The limit of all other texts together, which every step writes again. */
const inlineMax = 64_000;
/** Every list reads them. */
const alwaysInline: ReadonlySet<string> = new Set(['info', 'run']);

/** Which texts are inline, and which are separate: each record of `separate` becomes a message. */
export function splitTexts(texts: Readonly<Record<string, string>>): {
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
