// Trimming and deleting streams of the bus, inside the writer thread.

import type { TrimOrder, Trimmed } from '../../../bus/bus.ts';
import type { SqlQuery, SqlValue } from '../thread/protocol.ts';

export type BusTrim = Omit<TrimOrder, 'storedBefore' | 'beforeSequence'> & {
  readonly storedBeforeMs: number | undefined;
  readonly beforeSeq: number | undefined;
};

export interface TrimStep extends Trimmed {
  /** What remains to be removed, if a step was not enough. */
  readonly rest: BusTrim | undefined;
}

/** The most messages that one commit removes: an append waits at most for one such commit. */
export const trimStepMax = 1_000;

export interface BusQuery extends SqlQuery {
  readonly head: () => number;
  readonly streamId: (subject: string) => number | undefined;
}

export interface BusTrimming {
  readonly trim: (subject: string, order: BusTrim) => TrimStep;
  /** Deletes the messages of a stream that match the condition, including messages that are pending in a group. */
  readonly drop: (stream: number, where: string, ...values: readonly SqlValue[]) => number;
  readonly deleteStream: (subject: string) => boolean;
}

export function createBusTrimming({ all, one, number, head, streamId }: BusQuery): BusTrimming {
  function drop(stream: number, where: string, ...values: readonly SqlValue[]): number {
    all(`delete from bus_pending where stream_id = ? and ${where}`, stream, ...values);
    const deleted = all(
      `delete from bus_messages where stream_id = ? and ${where} returning length(data) as bytes`,
      stream,
      ...values,
    );
    const bytes = deleted.reduce((sum, row) => sum + Number(row['bytes']), 0);
    all(
      'update bus_streams set length = length - ?, bytes = bytes - ? where id = ?',
      deleted.length,
      bytes,
      stream,
    );
    return deleted.length;
  }

  /** The lowest message that a group has not acked. */
  function floorOf(stream: number): number {
    const floors = all(
      `select coalesce(
         (select min(p.seq) from bus_pending p where p.stream_id = ?1 and p.group_id = g.id),
         (select m.seq from bus_messages m where m.stream_id = ?1 and m.seq > g.cursor order by m.seq limit 1)
       ) as seq
       from bus_group_streams b join bus_groups g on g.id = b.group_id where b.stream_id = ?1`,
      stream,
    );
    const seqs = floors.flatMap(({ seq = null }) => (seq === null ? [] : [Number(seq)]));
    return Math.min(Number.MAX_SAFE_INTEGER, ...seqs);
  }

  function trim(subject: string, order: BusTrim): TrimStep {
    const stream = streamId(subject);
    if (stream === undefined) return { removed: 0, heldBack: 0, rest: undefined };
    const cut = cutOf(stream, order);
    const { evenUnacked } = order;
    const last = evenUnacked === true ? cut : Math.min(cut, floorOf(stream) - 1);
    const lastOfStep = number(
      `select max(seq) from (select seq from bus_messages where stream_id = ? and seq <= ?
         order by seq limit ${trimStepMax})`,
      stream,
      last,
    );
    const removed = drop(stream, 'seq <= ?', lastOfStep);
    if (removed === trimStepMax) {
      // Keep the cut: messages that arrive between two steps are not part of this trim.
      const rest = { evenUnacked, beforeSeq: cut + 1, storedBeforeMs: undefined };
      return { removed, heldBack: 0, rest };
    }
    const heldBack = number(
      'select count(*) from bus_messages where stream_id = ? and seq <= ?',
      stream,
      cut,
    );
    return { removed, heldBack, rest: undefined };
  }

  /** The sequence of the last message to remove; 0: no message. */
  function cutOf(stream: number, order: BusTrim): number {
    const { storedBeforeMs, beforeSeq = 0, lengthMax, bytesMax } = order;
    const cuts = [beforeSeq - 1];
    if (storedBeforeMs !== undefined) {
      const firstRemaining = one(
        'select seq from bus_messages where stream_id = ? and stored_at_ms >= ? order by seq limit 1',
        stream,
        storedBeforeMs,
      );
      cuts.push(firstRemaining === undefined ? head() : Number(firstRemaining['seq']) - 1);
    }
    if (lengthMax !== undefined) {
      cuts.push(
        number(
          'select seq from bus_messages where stream_id = ? order by seq desc limit 1 offset ?',
          stream,
          lengthMax,
        ),
      );
    }
    if (bytesMax !== undefined) {
      cuts.push(
        number(
          `select max(seq) from (select seq, sum(length(data)) over (order by seq desc) as bytes
             from bus_messages where stream_id = ?) where bytes > ?`,
          stream,
          bytesMax,
        ),
      );
    }
    return Math.max(0, ...cuts);
  }

  function deleteStream(subject: string): boolean {
    const stream = streamId(subject);
    if (stream === undefined) return false;
    drop(stream, 'true');
    for (const table of ['bus_message_ids', 'bus_group_streams']) {
      all(`delete from ${table} where stream_id = ?`, stream);
    }
    all('delete from bus_streams where id = ?', stream);
    return true;
  }

  return { trim, drop, deleteStream };
}
