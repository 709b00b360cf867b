// A job as it stands in the bucket: one message, whose first line is the head and where its texts are; the
// texts follow as they are. Large ones lie in messages of their own (values), which the row names.

import type { TaskHead, TaskState } from '../../../tasks/task-job.ts';
import { taskTypeOf } from '../../../tasks/task-job.ts';

/** Texts that lie in another message of the bucket. */
export interface TaskValue {
  readonly seq: number;
  readonly names: readonly string[];
}

export interface TaskRow {
  readonly head: TaskHead;
  /** Name and length of each text, in the order of the body. */
  readonly inline: readonly (readonly [string, number])[];
  /** Undefined: not kept here, ask the bucket. */
  readonly body: string | undefined;
  readonly values: readonly TaskValue[];
}

/** A row, and where it stands. */
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

/** The texts that lie in the row itself. */
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

/** A text of this many characters lies in a message of its own. */
const alone = 16_000;
/** All others together: what a step writes again and again. */
const inlineMax = 64_000;
/** They are asked for with every list. */
const kept: ReadonlySet<string> = new Set(['info', 'run']);

/** Which texts stay in the row, and which go: each list becomes a message. */
export function splitTexts(texts: Readonly<Record<string, string>>): {
  readonly stay: Readonly<Record<string, string>>;
  readonly go: readonly Readonly<Record<string, string>>[];
} {
  const stay: Record<string, string> = {};
  const go: Record<string, string>[] = [];
  let left = 0;
  for (const [name, text] of Object.entries(texts)) {
    if (text.length >= alone) {
      go.push({ [name]: text });
    } else {
      stay[name] = text;
      left += text.length;
    }
  }
  if (left <= inlineMax) return { stay, go };
  const others = Object.entries(stay).filter(([name]) => !kept.has(name));
  for (const [name] of others) delete stay[name];
  return { stay, go: [...go, Object.fromEntries(others)] };
}
