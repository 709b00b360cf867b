// Rows in the bucket: read, made of changed texts, and written with the sequence that they were made from.

import { randomUUID } from 'node:crypto';
import type { StoredTask, TaskHead } from '../../../tasks/task-job.ts';
import type { TaskBucket } from './bucket.ts';
import type { TaskIndex } from './task-index.ts';
import { taskKeys } from './keys.ts';
import {
  decodeRow,
  encodeRow,
  inlineTexts,
  splitTexts,
  withTexts,
  type PlacedRow,
  type TaskRow,
  type TaskValue,
} from './row.ts';

/** What is to become of a job. */
export interface RowChange {
  /** Undefined: it is new; `expected` is its marker's, or 0. */
  readonly base: PlacedRow | undefined;
  readonly expected: number;
  readonly head: TaskHead;
  readonly fields: Readonly<Record<string, string | null>>;
}

export interface TaskRows {
  /** As the bucket has them now. A marker has a sequence, and no row. */
  read(ids: readonly string[]): Promise<readonly RowRead[]>;
  /** With its texts, from the index or the bucket; undefined: it was changed since. */
  withBodies(rows: readonly PlacedRow[]): Promise<readonly (PlacedRow | undefined)[]>;
  /** The texts of values, too; those of other names are left out. Undefined: it was changed since. */
  whole(
    rows: readonly PlacedRow[],
    names?: ReadonlySet<string>,
  ): Promise<readonly (StoredTask | undefined)[]>;
  /** The row as it stands now; undefined: another one was quicker. Bases have their bodies. */
  write(changes: readonly RowChange[]): Promise<readonly (PlacedRow | undefined)[]>;
}

interface RowRead {
  readonly seq: number;
  readonly row: PlacedRow | undefined;
}

/** What lies in one value message: names and their texts. */
type ValueTexts = Readonly<Record<string, string>>;

export function createTaskRows(bucket: TaskBucket, index: TaskIndex): TaskRows {
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
    rows: readonly PlacedRow[],
  ): Promise<readonly (PlacedRow | undefined)[]> {
    const bare = rows.filter(({ body }) => body === undefined);
    if (bare.length === 0) return rows;
    const found = await bucket.at(bare.map(({ seq }) => seq));
    const bodies = new Map(
      found.flatMap((message, at) => {
        const { id } = (bare[at] as PlacedRow).head;
        const isSame = message?.key === taskKeys.job(id) && message.text !== '';
        return isSame ? [[id, { ...decodeRow(id, message.text), seq: message.seq }] as const] : [];
      }),
    );
    return rows.map((row) => (row.body === undefined ? bodies.get(row.head.id) : row));
  }

  async function whole(
    rows: readonly PlacedRow[],
    names?: ReadonlySet<string>,
  ): Promise<readonly (StoredTask | undefined)[]> {
    const full = await withBodies(rows);
    const isWanted = (value: TaskValue): boolean =>
      names === undefined || value.names.some((name) => names.has(name));
    const seqs = full.flatMap((row) => (row?.values ?? []).filter(isWanted).map(({ seq }) => seq));
    const messages = await bucket.at(seqs);
    const values = new Map(
      messages.flatMap((message) =>
        message === undefined ? [] : [[message.seq, JSON.parse(message.text) as ValueTexts]],
      ),
    );
    return full.map((row) => {
      if (row === undefined) return undefined;
      const fields = inlineTexts(row);
      for (const value of row.values.filter(isWanted)) {
        const texts = values.get(value.seq);
        // Whoever changed the job meanwhile took it away.
        if (texts === undefined) return undefined;
        for (const name of value.names) {
          const text = texts[name];
          if (text !== undefined) fields[name] = text;
        }
      }
      return { head: row.head, fields };
    });
  }

  async function write(changes: readonly RowChange[]): Promise<readonly (PlacedRow | undefined)[]> {
    const rows = await placed(changes);
    const seqs = await bucket.write(
      rows.map((row, at) => ({
        key: taskKeys.job(row.head.id),
        data: encodeRow(row),
        expected: changes[at]?.expected,
      })),
    );
    const useless: number[] = [];
    const written = rows.map((row, at) => {
      const { base } = changes[at] as RowChange;
      const seq = seqs[at];
      const [lost, kept] = seq === undefined ? [row, base] : [base, row];
      const used = new Set((kept?.values ?? []).map((value) => value.seq));
      useless.push(
        ...(lost?.values ?? []).flatMap((value) => (used.has(value.seq) ? [] : [value.seq])),
      );
      if (seq === undefined) return undefined;
      const now = { ...row, seq };
      index.applyRow(now);
      return now;
    });
    await bucket.erase(useless);
    return written;
  }

  /** Values first: a row never names one that is not there. */
  async function placed(changes: readonly RowChange[]): Promise<readonly TaskRow[]> {
    const made = changes.map(({ base, head, fields }) => {
      const isSame = base !== undefined && Object.keys(fields).length === 0;
      if (isSame) return { head, values: base.values, stay: base, go: [] };
      const texts: Record<string, string> = base === undefined ? {} : inlineTexts(base);
      for (const [name, text] of Object.entries(fields)) {
        if (text === null) delete texts[name];
        else texts[name] = text;
      }
      const values = (base?.values ?? []).flatMap(({ seq, names }) => {
        const left = names.filter((name) => !(name in fields));
        return left.length === 0 ? [] : [{ seq, names: left }];
      });
      const { stay, go } = splitTexts(texts);
      return { head, values, stay: withTexts(stay), go };
    });
    const going = made.flatMap(({ head, go }) => go.map((texts) => ({ head, texts })));
    const seqs = await bucket.write(
      going.map(({ head, texts }) => ({
        key: taskKeys.value(head.id, randomUUID()),
        data: JSON.stringify(texts),
      })),
    );
    const next = seqs.values();
    return made.map(({ head, stay, go, values }) => ({
      head,
      inline: stay.inline,
      body: stay.body,
      values: [
        ...values,
        ...go.map((texts) => ({ seq: next.next().value ?? 0, names: Object.keys(texts) })),
      ],
    }));
  }

  return { read, withBodies, whole, write };
}
