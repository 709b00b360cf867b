// Consumer groups. Each group has a record, and a Redis consumer group in every stream that matches its filters.
// Leases are stored separately, because Redis consumer groups have neither delays nor fences.

import type { GroupInfo, PendingMessage, StartFrom } from '../../../bus/bus.ts';
import { matchesFilter, type GroupSettings } from '../../../bus/bus-engine.ts';
import { groupConflict, unknownGroup } from '../../../bus/group-errors.ts';
import { compareSequences } from '../../../bus/sequence.ts';
import { eachOf, textOf } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import { idBefore } from './entry.ts';

export interface GroupRecord {
  readonly name: string;
  readonly generation: number;
  /** Name of its Redis consumer groups; a group that is deleted and created again gets another native name. */
  readonly native: string;
  readonly filters: readonly string[];
  readonly leaseMs: number;
  readonly maxAckPending: number;
  readonly isPlaced: boolean;
}

export interface BusGroups {
  ensure(settings: GroupSettings): Promise<GroupRecord>;
  find(name: string): Promise<GroupRecord | undefined>;
  all(): Promise<readonly GroupRecord[]>;
  infos(): Promise<readonly GroupInfo[]>;
  pending(name: string, limit: number): Promise<readonly PendingMessage[]>;
  seek(name: string, to: StartFrom): Promise<void>;
  delete(name: string): Promise<boolean>;
}

export function createBusGroups(context: RedisBusContext): BusGroups {
  const { calls, keyspace, registry, clock } = context;

  async function find(name: string): Promise<GroupRecord | undefined> {
    const text = await calls.ask((client) => client.hget(keyspace.groups, name));
    return text === null ? undefined : recordOf(name, text);
  }

  async function all(): Promise<readonly GroupRecord[]> {
    const texts = await calls.ask((client) => client.hgetall(keyspace.groups));
    return Object.entries(texts)
      .map(([name, text]) => recordOf(name, text))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Registered subjects that match, and all subjects that the filters name in full. */
  async function subjectsOf({ filters }: GroupRecord): Promise<string[]> {
    const { subjects } = await registry.since(0);
    const matching = subjects.filter((each) => matchesAny(filters, each));
    return [...new Set([...matching, ...fullSubjects(filters)])];
  }

  async function place(
    record: GroupRecord,
    action: 'place' | 'seek' | 'drop',
    from: StartFrom,
  ): Promise<void> {
    const { native } = record;
    await eachOf(await subjectsOf(record), async (subject) => {
      const key = keyspace.streamKey(subject);
      const leases = keyspace.leases(keyspace.domainOf(key), native);
      await calls.run(busScripts.place, [key, ...leases], [action, native, idBefore(from)]);
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
    async ensure({ name, filters, from, leaseMs, maxAckPending }) {
      const wanted = filters.join(' ');
      const fresh = { filters: wanted, leaseMs, maxAckPending, isPlaced: false };
      const values = [name, wanted, JSON.stringify(fresh), leaseMs, maxAckPending];
      const keys = [keyspace.groups, keyspace.generations];
      const record = recordOf(name, textOf(await calls.run(busScripts.ensureGroup, keys, values)));
      if (record.filters.join(' ') !== wanted) {
        const {
          filters: [existing = ''],
        } = record;
        throw groupConflict(name, { there: existing, wanted: filters[0] ?? '' });
      }
      // Repeats the work of a process that crashed: the group must exist in every stream before the first fetch.
      if (!record.isPlaced) {
        await place(record, 'place', from);
        await calls.run(busScripts.groupPlaced, [keyspace.groups], [name, record.generation]);
      }
      return record;
    },

    async infos() {
      const records = await all();
      const { subjects } = await registry.since(0);
      const wanted = new Set([
        ...subjects,
        ...records.flatMap(({ filters }) => fullSubjects(filters)),
      ]);
      const counts = new Map(records.map(({ name }) => [name, { lag: 0, pending: 0 }]));
      await eachOf([...wanted], async (subject) => {
        const matching = records.filter(({ filters }) => matchesAny(filters, subject));
        if (matching.length === 0) return;
        const natives = matching.map(({ native }) => native);
        const cells = await calls.run(busScripts.info, [keyspace.streamKey(subject)], natives);
        if (cells === null) return;
        for (const [at, { name }] of matching.entries()) {
          const count = counts.get(name);
          if (count === undefined) continue;
          count.lag += Number((cells as unknown[])[4 + at * 2]);
          count.pending += Number((cells as unknown[])[5 + at * 2]);
        }
      });
      return records.map(({ name, filters, leaseMs, maxAckPending }) => {
        const { lag = 0, pending = 0 } = counts.get(name) ?? {};
        return { name, subject: filters[0] ?? '', leaseMs, maxAckPending, lag, pending };
      });
    },

    async pending(name, limit) {
      const record = await known(name);
      const keys = (await subjectsOf(record)).map(keyspace.streamKey);
      const domains = [...new Set(keys.map(keyspace.domainOf))];
      const found = await eachOf(domains, async (domain) => {
        const [leases, fences] = keyspace.leases(domain, record.native);
        const [cells, counts] = await calls.ask((client) =>
          Promise.all([client.zrange(leases, 0, -1, 'WITHSCORES'), client.hgetall(fences)]),
        );
        return Array.from({ length: cells.length / 2 }, (_, at) =>
          pendingOf(cells[at * 2] ?? '', Number(cells[at * 2 + 1]), counts),
        );
      });
      return found
        .flat()
        .toSorted((a, b) => compareSequences(a.sequence, b.sequence))
        .slice(0, limit);
    },

    async seek(name, to) {
      const record = await known(name);
      await place(record, 'seek', to);
      await calls.ask((client) => client.publish(keyspace.channel, 's *'));
    },

    async delete(name) {
      const record = await find(name);
      if (record === undefined) return false;
      // Delete the record first: a crash in between leaves only native groups whose names are never reused.
      const removed = await calls.ask((client) => client.hdel(keyspace.groups, name));
      await place(record, 'drop', 'start');
      await calls.ask((client) => client.publish(keyspace.channel, 's *'));
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

export function matchesAny(filters: readonly string[], subject: string): boolean {
  return filters.some((filter) => matchesFilter(filter, subject));
}

export function fullSubjects(filters: readonly string[]): string[] {
  return filters.filter((filter) => !/(?:^|\.)[*>](?:\.|$)/.test(filter));
}

function recordOf(name: string, text: string): GroupRecord {
  const [generation = ''] = text.split(' ', 1);
  const { filters, leaseMs, maxAckPending, isPlaced } = JSON.parse(
    text.slice(generation.length),
  ) as Omit<GroupRecord, 'filters'> & { readonly filters: string };
  return {
    name,
    generation: Number(generation),
    native: generation === '1' ? name : `${name}~${generation}`,
    filters: filters.split(' '),
    leaseMs,
    maxAckPending,
    isPlaced,
  };
}
