// Lists, trims and deletes streams. Messages are deleted one by one: after a purge of a subject, servers of 2.9 skip
// messages that a consumer with a wider filter has not read.

import type { StreamGroup, StreamInfo } from '../../../bus/bus.ts';
import { matchesFilter, type BusEngine } from '../../../bus/bus-engine.ts';
import type { BusConsumers } from './consumers.ts';
import type { BusReader } from './read.ts';
import type { BusParts, BusStreams } from './streams.ts';
import type { ConsumerInfo, StoredMessage } from '../connection/jetstream-wire.ts';

type BusUpkeep = Pick<BusEngine, 'streams' | 'trim' | 'remove' | 'deleteStream'>;

const deleteBatchMax = 1_000;

export function createBusUpkeep(
  { wire, layout }: BusParts,
  parts: {
    readonly streams: BusStreams;
    readonly consumers: BusConsumers;
    readonly reader: BusReader;
  },
): BusUpkeep {
  const { streams, consumers, reader } = parts;

  /** Subject → number of messages, for all subjects that match the pattern. */
  async function lengths(pattern: string): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    const body = { subjects_filter: layout.toNats(pattern) };
    for (let offset = 0; ;) {
      const page = await streams.info(layout.streamOf(pattern), { ...body, offset });
      const entries = Object.entries(page?.state.subjects ?? {});
      for (const [name, length] of entries) {
        const subject = layout.fromNats(name);
        if (subject !== undefined) found.set(subject, length);
      }
      offset += entries.length;
      if (entries.length === 0 || offset >= (page?.total ?? 0)) return found;
    }
  }

  /** All consumers that have to ack messages of this subject, including those of other programs. */
  async function readersOf(subject: string): Promise<readonly ConsumerInfo[]> {
    return (await consumers.list(layout.streamOf(subject))).filter(
      (each) =>
        each.config.ack_policy !== 'none' && matchesFilter(consumers.filterOf(each), subject),
    );
  }

  async function groupsOf(info: Omit<StreamInfo, 'groups'>, all: readonly ConsumerInfo[]) {
    const taking = all.filter((each) => matchesFilter(consumers.filterOf(each), info.subject));
    const groups: StreamGroup[] = [];
    for (const each of taking) {
      const name = /^(.+)@(?:\d+|redo)$/.exec(each.name)?.[1];
      if (name === undefined || each.config.ack_policy === 'none') continue;
      groups.push({ name, ...(await stateIn(info, each)) });
    }
    return groups;
  }

  /**
   * Returns the lag and the pending messages of a consumer in one subject. The server reports both for a consumer over
   * one subject. For a pattern they are counted: all messages between the lowest unacked and the newest delivered one may
   * be pending.
   */
  async function stateIn(
    info: Omit<StreamInfo, 'groups'>,
    consumer: ConsumerInfo,
  ): Promise<Omit<StreamGroup, 'name'>> {
    if (consumers.filterOf(consumer) === info.subject) {
      return { lag: consumer.num_pending, pending: consumer.num_ack_pending };
    }
    const { delivered, ack_floor: floor, num_ack_pending: pendingMax } = consumer;
    const lag = consumer.num_pending === 0 ? 0 : await countAfter(info, delivered.stream_seq);
    const unacked = pendingMax === 0 ? lag : await countAfter(info, floor.stream_seq);
    return { lag, pending: Math.min(pendingMax, unacked - lag) };
  }

  async function countAfter(info: Omit<StreamInfo, 'groups'>, sequence: number): Promise<number> {
    if (info.lastSequence === undefined || sequence >= Number(info.lastSequence)) return 0;
    if (sequence < Number(info.firstSequence)) return info.length;
    return reader.countFrom(info.subject, sequence + 1);
  }

  return {
    async streams(pattern, { after, limit }) {
      const found = await lengths(pattern);
      const page = [...found.keys()]
        .filter((subject) => matchesFilter(pattern, subject) && subject > (after ?? ''))
        .toSorted()
        .slice(0, limit);
      if (page.length === 0) return [];
      const stream = layout.streamOf(pattern);
      const names = page.map((subject) => layout.toNats(subject));
      const [firsts, lasts, all] = await Promise.all([
        wire.getMessages(names.map((name) => ({ stream, query: { seq: 1, next_by_subj: name } }))),
        wire.getMessages(names.map((name) => ({ stream, query: { last_by_subj: name } }))),
        consumers.list(stream),
      ]);
      const infos = page.map((subject, at) => ({
        subject,
        length: found.get(subject) ?? 0,
        firstSequence: sequenceOf(firsts[at]),
        lastSequence: sequenceOf(lasts[at]),
        firstStoredAt: storedAtOf(firsts[at]),
        lastStoredAt: storedAtOf(lasts[at]),
        bytes: undefined,
      }));
      return Promise.all(
        infos.map(async (info) => ({ ...info, groups: await groupsOf(info, all) })),
      );
    },

    async trim(subject, order) {
      const stream = layout.streamOf(subject);
      const { storedBefore, beforeSequence, lengthMax, evenUnacked = false } = order;
      const length = (await lengths(subject)).get(subject) ?? 0;
      if (length === 0) return { removed: 0, heldBack: 0 };
      // The ack floors only grow during the trim.
      const floors = (await readersOf(subject)).map((each) => each.ack_floor.stream_seq);
      const floor = evenUnacked ? Number.POSITIVE_INFINITY : Math.min(...floors);
      let seen = 0;
      let removed = 0;
      let heldBack = 0;
      let batch: number[] = [];
      for await (const { sequence, entry } of reader.headers(subject)) {
        const isWanted =
          (storedBefore !== undefined && entry.storedAtMs < storedBefore.getTime()) ||
          (beforeSequence !== undefined && sequence < Number(beforeSequence)) ||
          (lengthMax !== undefined && length - seen > lengthMax);
        if (!isWanted) break;
        seen += 1;
        if (sequence > floor) heldBack += 1;
        else batch.push(sequence);
        if (batch.length < deleteBatchMax) continue;
        removed += await wire.deleteMessages(stream, batch);
        batch = [];
      }
      removed += await wire.deleteMessages(stream, batch);
      return { removed, heldBack };
    },

    async remove(subject, sequences) {
      const stream = layout.streamOf(subject);
      // The sequences of a stream are shared by all of its subjects, so check the subject of each message.
      const queries = sequences.map((seq) => ({ stream, query: { seq: Number(seq) } }));
      const found = await wire.getMessages(queries);
      const own = found.filter((each) => each?.subject === layout.toNats(subject));
      return wire.deleteMessages(
        stream,
        own.map((each) => each?.seq ?? 0),
      );
    },

    async deleteStream(subject) {
      const stream = layout.streamOf(subject);
      if ((await lengths(subject)).size === 0) return false;
      const all: number[] = [];
      for await (const { sequence } of reader.headers(subject)) all.push(sequence);
      await wire.deleteMessages(stream, all);
      return true;
    },
  };
}

function sequenceOf(message: StoredMessage | undefined): string | undefined {
  return message === undefined ? undefined : String(message.seq);
}

function storedAtOf(message: StoredMessage | undefined): Date | undefined {
  return message === undefined ? undefined : new Date(message.time);
}
