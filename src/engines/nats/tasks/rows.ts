// Reads rows from the bucket, applies changes, and writes them with their expected sequence.

import { randomUUID } from 'node:crypto';
import { parseStored } from '../../../foundation/parse-json.ts';
import { damagedField } from '../../../tasks/task-record.ts';
import type { StoredTask, TaskHead } from '../../../tasks/task-job.ts';
import type { Bucket, BucketWrite } from '../connection/bucket.ts';
import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import {
  decodeRow,
  encodeRow,
  inlineFields,
  splitFields,
  packFields,
  type StoredTaskRow,
  type TaskRow,
  type TaskValue,
} from './row.ts';

/** The new state of a job. */
export interface RowChange {
  /** The row to change. Undefined: a new job, and `expected` is the sequence of its marker, or 0. */
  readonly base: StoredTaskRow | undefined;
  readonly expected: number;
  readonly head: TaskHead;
  readonly fields: Readonly<Record<string, string | null>>;
}

export interface TaskRows {
  /** Reads from the bucket. A marker has a sequence and no row. */
  read(ids: readonly string[]): Promise<readonly RowRead[]>;
  /** Adds missing bodies from the bucket; undefined: the job has changed since. */
  withBodies(rows: readonly StoredTaskRow[]): Promise<readonly (StoredTaskRow | undefined)[]>;
  /** Adds the fields in separate values, or only those in `names`. Undefined: the job has changed since. */
  whole(
    rows: readonly StoredTaskRow[],
    names?: ReadonlySet<string>,
  ): Promise<readonly (StoredTask | undefined)[]>;
  /** Returns the new row; undefined: another process was faster. Every base must have its body. */
  write(changes: readonly RowChange[]): Promise<readonly (StoredTaskRow | undefined)[]>;
  /**
   * Writes keys without the content of a job, and updates the index. Returns which writes succeeded; a key that another process
   * wrote before is read again.
   */
  writeKeys(writes: readonly BucketWrite[]): Promise<readonly boolean[]>;
}

interface RowRead {
  readonly seq: number;
  readonly row: StoredTaskRow | undefined;
}

/** The content of a value: fields by name. Empty if the stored text is damaged. */
type ValueTexts = Readonly<Record<string, string>>;
const valueTexts = (text: string): ValueTexts => Object(parseStored(text)) as ValueTexts;

export function createTaskRows(bucket: Bucket, index: TaskIndex): TaskRows {
  async function read(ids: readonly string[]): Promise<readonly RowRead[]> {
    const found = await bucket.get(ids.map((id) => taskKeys.job(id)));
    return found.map((message, at): RowRead => {
      if (message === undefined || message.text === '') {
        return { seq: message?.seq ?? 0, row: undefined };
      }
      const row = { ...decodeRow(ids[at] ?? '', message.text), seq: message.seq };
      index.applyRow(row);
      return { seq: message.seq, row };
    });
  }

  async function withBodies(
    rows: readonly StoredTaskRow[],
  ): Promise<readonly (StoredTaskRow | undefined)[]> {
    const bare = rows.filter(({ body }) => body === undefined);
    if (bare.length === 0) return rows;
    const found = await bucket.at(bare.map(({ seq }) => seq));
    const bodies = new Map(
      found.flatMap((message, at) => {
        const { id } = (bare[at] as StoredTaskRow).head;
        const isSame = message?.key === taskKeys.job(id) && message.text !== '';
        return isSame ? [[id, { ...decodeRow(id, message.text), seq: message.seq }] as const] : [];
      }),
    );
    return rows.map((row) => (row.body === undefined ? bodies.get(row.head.id) : row));
  }

  async function whole(
    rows: readonly StoredTaskRow[],
    names?: ReadonlySet<string>,
  ): Promise<readonly (StoredTask | undefined)[]> {
    const full = await withBodies(rows);
    const isWanted = (value: TaskValue): boolean =>
      names === undefined || value.names.some((name) => names.has(name));
    const seqs = full.flatMap((row) => (row?.values ?? []).filter(isWanted).map(({ seq }) => seq));
    const messages = await bucket.at(seqs);
    const values = new Map(
      messages.flatMap((message) =>
        message === undefined ? [] : [[message.seq, valueTexts(message.text)]],
      ),
    );
    return full.map((row) => {
      if (row === undefined) return undefined;
      const fields = inlineFields(row);
      for (const value of row.values.filter(isWanted)) {
        const texts = values.get(value.seq);
        // A process that has changed the job since deleted the value.
        if (texts === undefined) return undefined;
        for (const name of value.names) {
          const text = texts[name];
          if (typeof text === 'string') fields[name] = text;
          else fields[damagedField] = name;
        }
      }
      return { head: row.head, fields };
    });
  }

  async function write(
    changes: readonly RowChange[],
  ): Promise<readonly (StoredTaskRow | undefined)[]> {
    const rows = await withValues(changes);
    const seqs = await bucket.write(
      rows.map((row, at) => ({
        key: taskKeys.job(row.head.id),
        data: encodeRow(row),
        expected: changes[at]?.expected,
      })),
    );
    const unused: number[] = [];
    const written = rows.map((row, at) => {
      const { base } = changes[at] as RowChange;
      const seq = seqs[at];
      const [replaced, current] = seq === undefined ? [row, base] : [base, row];
      const used = new Set((current?.values ?? []).map((value) => value.seq));
      unused.push(
        ...(replaced?.values ?? []).flatMap((value) => (used.has(value.seq) ? [] : [value.seq])),
      );
      if (seq === undefined) return undefined;
      const stored = { ...row, seq };
      index.applyRow(stored);
      return stored;
    });
    await bucket.erase(unused);
    return written;
  }

  async function writeKeys(writes: readonly BucketWrite[]): Promise<readonly boolean[]> {
    const seqs = await bucket.write(writes);
    const late: string[] = [];
    for (const [at, { key, data }] of writes.entries()) {
      const seq = seqs[at];
      if (seq === undefined) late.push(key);
      else index.apply(key, seq, data);
    }
    for (const [at, message] of (await bucket.get(late)).entries()) {
      if (message === undefined) index.forget(late[at] ?? '');
      else index.apply(message.key, message.seq, message.text);
    }
    return seqs.map((seq) => seq !== undefined);
  }

  /** Writes values before rows: a row never refers to a missing value. */
  async function withValues(changes: readonly RowChange[]): Promise<readonly TaskRow[]> {
    const prepared = changes.map(({ base, head, fields }) => {
      const isSame = base !== undefined && Object.keys(fields).length === 0;
      if (isSame) return { head, values: base.values, inline: base, separate: [] };
      const texts: Record<string, string> = base === undefined ? {} : inlineFields(base);
      for (const [name, text] of Object.entries(fields)) {
        if (text === null) delete texts[name];
        else texts[name] = text;
      }
      const values = (base?.values ?? []).flatMap(({ seq, names }) => {
        const left = names.filter((name) => !(name in fields));
        return left.length === 0 ? [] : [{ seq, names: left }];
      });
      const { inline, separate } = splitFields(texts);
      return { head, values, inline: packFields(inline), separate };
    });
    const writes = prepared.flatMap(({ head, separate }) =>
      separate.map((texts) => ({ head, texts })),
    );
    const seqs = await bucket.write(
      writes.map(({ head, texts }) => ({
        key: taskKeys.value(head.id, randomUUID()),
        data: JSON.stringify(texts),
      })),
    );
    const next = seqs.values();
    return prepared.map(({ head, inline, separate, values }) => ({
      head,
      inline: inline.inline,
      body: inline.body,
      values: [
        ...values,
        ...separate.map((texts) => ({ seq: next.next().value ?? 0, names: Object.keys(texts) })),
      ],
    }));
  }

  return { read, withBodies, whole, write, writeKeys };
}
