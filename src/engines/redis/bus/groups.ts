// Consumer groups. Each group has a record, and a Redis consumer group in every stream that matches its filters.
// Leases are stored separately, because Redis consumer groups have neither delays nor fences.

import type { GroupInfo, PendingMessage, StartFrom, StreamInfo } from '../../../bus/bus.ts';
import type { GroupSettings } from '../../../bus/bus-engine.ts';
import { redoSubject } from '../../../bus/dead-letter.ts';
import { groupConflict, unknownGroup } from '../../../bus/group-errors.ts';
import { compareSequences } from '../../../bus/sequence.ts';
import { parseStored } from '../../../foundation/parse-json.ts';
import { eachOf, pairsOf, textOf } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import { idBefore, storedAtMsOf } from './entry.ts';
import { matchesAny } from './registry.ts';

export interface GroupRecord {
  readonly name: string;
  readonly generation: number;
  /** The name of the Redis consumer groups. A group that is deleted and created again gets another native name. */
  readonly native: string;
  readonly filters: readonly string[];
  readonly leaseMs: number;
  readonly maxAckPending: number;
  readonly isPlaced: boolean;
  /** The stored text, if it cannot be read. */
  readonly damaged?: string | undefined;
}

export interface BusGroups {
  ensure(settings: GroupSettings): Promise<GroupRecord>;
  find(name: string): Promise<GroupRecord | undefined>;
  all(): Promise<readonly GroupRecord[]>;
  infos(): Promise<readonly GroupInfo[]>;
  /** Undefined if the stream does not exist. */
  streamInfo(subject: string, groups: readonly GroupRecord[]): Promise<StreamInfo | undefined>;
  pending(name: string, limit: number): Promise<readonly PendingMessage[]>;
  seek(name: string, to: StartFrom): Promise<void>;
  delete(name: string): Promise<boolean>;
}

export function createBusGroups(context: RedisBusContext): BusGroups {
  const { redis, keyspace, registry, clock } = context;

  async function find(name: string): Promise<GroupRecord | undefined> {
    const text = await redis.ask((client) => client.hget(keyspace.groups, name));
    return text === null ? undefined : (recordOf(name, text) ?? damagedRecord(name, text));
  }

  async function all(): Promise<readonly GroupRecord[]> {
    const texts = await redis.ask((client) => client.hgetall(keyspace.groups));
    return Object.entries(texts)
      .map(([name, text]) => recordOf(name, text) ?? damagedRecord(name, text))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  async function streamInfo(
    subject: string,
    records: readonly GroupRecord[],
  ): Promise<StreamInfo | undefined> {
    const matching = records.filter(({ filters }) => matchesAny(filters, subject));
    const natives = matching.map(({ native }) => native);
    const cells = await redis.runForBytes(busScripts.info, [keyspace.streamKey(subject)], natives);
    if (cells === null) return undefined;
    const [length, first, last, bytes, ...counts] = cells as readonly unknown[];
    const [firstSequence, lastSequence] = [first, last].map((id) => textOf(id) || undefined);
    const storedAt = (id: string | undefined): Date | undefined =>
      id === undefined ? undefined : new Date(storedAtMsOf(id));
    return {
      subject,
      length: Number(length),
      firstSequence,
      lastSequence,
      firstStoredAt: storedAt(firstSequence),
      lastStoredAt: storedAt(lastSequence),
      bytes: Number(bytes),
      groups: matching.map(({ name }, at) => ({
        name,
        lag: Number(counts[at * 2]),
        pending: Number(counts[at * 2 + 1]),
      })),
    };
  }

  async function changeInStreams(
    record: GroupRecord,
    action: 'create' | 'seek' | 'drop',
    from: StartFrom,
  ): Promise<void> {
    const { native } = record;
    await eachOf(await registry.matching(record.filters), async (subject) => {
      const key = keyspace.streamKey(subject);
      const leases = keyspace.leases(keyspace.domainOf(key), native);
      await redis.runForBytes(
        busScripts.changeGroup,
        [key, ...leases],
        [action, native, idBefore(from)],
      );
    });
  }

  async function known(name: string): Promise<GroupRecord> {
    const record = await find(name);
    if (record === undefined) throw unknownGroup(name);
    return record;
  }

  return {
    find,
    all,
    streamInfo,
    async ensure({ name, filters, from, leaseMs, maxAckPending }) {
      const wanted = filters.join(' ');
      const fresh = { filters: wanted, leaseMs, maxAckPending, isPlaced: false };
      const values = [name, wanted, JSON.stringify(fresh), leaseMs, maxAckPending];
      const keys = [keyspace.groups, keyspace.generations];
      const stored = textOf(await redis.runForBytes(busScripts.ensureGroup, keys, values));
      const record = recordOf(name, stored) ?? damagedRecord(name, stored);
      if (record.filters.join(' ') !== wanted) {
        const {
          filters: [existing = ''],
        } = record;
        throw groupConflict(name, { there: existing, wanted: filters[0] ?? '' });
      }
      // The group must exist in every stream before the first fetch, even if the process that created it crashed.
      if (!record.isPlaced) {
        await changeInStreams(record, 'create', from);
        await redis.runForBytes(
          busScripts.groupPlaced,
          [keyspace.groups],
          [name, record.generation],
        );
      }
      return record;
    },

    async infos() {
      const records = await all();
      const subjects = await registry.matching(records.flatMap(({ filters }) => filters));
      const infos = await eachOf(subjects, (subject) => streamInfo(subject, records));
      const counts = infos.flatMap((info) => info?.groups ?? []);
      return records.map(({ name, filters, leaseMs, maxAckPending, damaged }) => {
        const own = counts.filter((each) => each.name === name);
        const lag = own.reduce((sum, each) => sum + each.lag, 0);
        const pending = own.reduce((sum, each) => sum + each.pending, 0);
        return { name, subject: damaged ?? filters[0] ?? '', leaseMs, maxAckPending, lag, pending };
      });
    },

    async pending(name, limit) {
      const record = await known(name);
      const keys = (await registry.matching(record.filters)).map(keyspace.streamKey);
      const domains = [...new Set(keys.map(keyspace.domainOf))];
      const found = await eachOf(domains, async (domain) => {
        const [leases, fences] = keyspace.leases(domain, record.native);
        const [cells, counts] = await redis.ask((client) =>
          Promise.all([client.zrange(leases, 0, -1, 'WITHSCORES'), client.hgetall(fences)]),
        );
        return pairsOf(cells).map(([member, score]) => pendingOf(member, Number(score), counts));
      });
      return found
        .flat()
        .toSorted((a, b) => compareSequences(a.sequence, b.sequence))
        .slice(0, limit);
    },

    async seek(name, to) {
      const record = await known(name);
      await changeInStreams(record, 'seek', to);
      await redis.ask((client) => client.publish(keyspace.channel, 's *'));
    },

    async delete(name) {
      const record = await find(name);
      if (record === undefined) return false;
      // Delete the record first: a crash in between leaves only native groups whose names are never reused.
      const removed = await redis.ask((client) => client.hdel(keyspace.groups, name));
      await changeInStreams(record, 'drop', 'start');
      await redis.ask((client) => client.publish(keyspace.channel, 's *'));
      return removed === 1;
    },
  };

  function pendingOf(
    member: string,
    score: number,
    counts: Readonly<Record<string, string>>,
  ): PendingMessage {
    const [key = '', id = ''] = member.split(' ');
    const [ms = '', seq = ''] = id.split('-');
    return {
      subject: keyspace.subjectOf(key) ?? key,
      sequence: `${BigInt(ms)}-${BigInt(seq)}`,
      deliveryCount: Number((counts[member] ?? '').split(' ')[1] ?? 0),
      // A score of 0 means that the message may be delivered now.
      availableAt: new Date(score === 0 ? clock.now() : score),
    };
  }
}

/** Undefined: the stored text is damaged. The next `ensure` replaces it. */
function recordOf(name: string, text: string): GroupRecord | undefined {
  const [generation = ''] = text.split(' ', 1);
  const stored = Object(parseStored(text.slice(generation.length))) as Partial<
    Omit<GroupRecord, 'filters'> & { readonly filters: string }
  >;
  const { filters, leaseMs = 0, maxAckPending = 0, isPlaced = false } = stored;
  if (typeof filters !== 'string') return undefined;
  return {
    name,
    generation: Number(generation),
    native: nativeOf(name, generation),
    filters: filters.split(' '),
    leaseMs,
    maxAckPending,
    isPlaced,
  };
}

/** It may have read any stream, so a trim respects it, and its deletion covers all streams. */
function damagedRecord(name: string, text: string): GroupRecord {
  const [generation = '1'] = /^\d+/.exec(text) ?? [];
  return {
    name,
    generation: Number(generation),
    native: nativeOf(name, generation),
    filters: ['>', redoSubject(name)],
    leaseMs: 0,
    maxAckPending: 0,
    isPlaced: false,
    damaged: text,
  };
}

const nativeOf = (name: string, generation: string): string =>
  generation === '1' ? name : `${name}~${generation}`;
