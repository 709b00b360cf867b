// Groups as durable consumers: `<group>@<generation>` over the group's pattern, and `<group>@redo` over the messages that
// were replayed to it. A seek creates a new generation, so acks of the old one have no effect.

import type { GroupInfo, StartFrom } from '../../../bus/bus.ts';
import type { GroupSettings } from '../../../bus/bus-engine.ts';
import { groupConflict, unknownGroup } from '../../../bus/group-errors.ts';
import type { BusParts, BusStreams } from './streams.ts';
import { startPolicy, type BusReader } from './read.ts';
import { unlessMissing, type ConsumerInfo } from '../connection/jetstream-wire.ts';

/** The consumers of a group. */
export interface GroupConsumers {
  readonly stream: string;
  readonly main: string;
  readonly redoStream: string;
  readonly redo: string;
}

export interface BusConsumers {
  ensure(settings: GroupSettings): Promise<void>;
  /** Rejects with `BUS_GROUP_UNKNOWN`. */
  find(group: string): Promise<GroupConsumers>;
  /** Drops the cached group, so that the next `find` looks it up again. */
  forget(group: string): void;
  seek(group: string, to: StartFrom): Promise<void>;
  remove(group: string): Promise<boolean>;
  groups(): Promise<readonly GroupInfo[]>;
  /** All consumers of a stream, including those of other programs. */
  list(stream: string): Promise<readonly ConsumerInfo[]>;
  /** The filter as a pattern of the bus. */
  filterOf(consumer: ConsumerInfo): string;
}

const msToNs = 1_000_000;
/** The maximum number of waiting members over all processes. */
const waitingMax = 5_000;
const redoSuffix = '@redo';

export function createBusConsumers(
  { wire, layout }: BusParts,
  streams: BusStreams,
  reader: BusReader,
): BusConsumers {
  const known = new Map<string, GroupConsumers>();
  const redoStream = layout.streamOf('_redo');

  async function create(stream: string, name: string, config: object): Promise<ConsumerInfo> {
    return wire.request<ConsumerInfo>(`CONSUMER.DURABLE.CREATE.${stream}.${name}`, {
      stream_name: stream,
      config: {
        durable_name: name,
        ack_policy: 'explicit',
        replay_policy: 'instant',
        max_deliver: -1,
        max_waiting: waitingMax,
        ...config,
      },
    });
  }

  async function info(stream: string, name: string): Promise<ConsumerInfo | undefined> {
    return unlessMissing(() => wire.request<ConsumerInfo>(`CONSUMER.INFO.${stream}.${name}`));
  }

  async function drop(stream: string, name: string): Promise<void> {
    await unlessMissing(() => wire.request(`CONSUMER.DELETE.${stream}.${name}`));
  }

  /** The generations of a group, newest first, with their streams. */
  async function generations(group: string): Promise<{ stream: string; name: string }[]> {
    for (const stream of layout.streams) {
      const all = await wire.consumers<string>('NAMES', stream);
      const names = all.filter((name) => generationOf(name, group) > 0);
      if (names.length === 0) continue;
      return names
        .toSorted((a, b) => generationOf(b, group) - generationOf(a, group))
        .map((name) => ({ stream, name }));
    }
    return [];
  }

  function filterOf({ config: { filter_subject: filter } }: ConsumerInfo): string {
    return filter === undefined || filter === '' ? '>' : (layout.fromNats(filter) ?? filter);
  }

  /** A time is converted to a sequence: servers of 2.9 cannot update a consumer with a start time. */
  async function startAt(filter: string, from: StartFrom): Promise<object> {
    const isTime = typeof from === 'object' && 'time' in from;
    return startPolicy(isTime ? { sequence: await reader.firstSince(filter, from.time) } : from);
  }

  /** Creates the consumer, or updates its limits. */
  async function ensureOne(
    settings: GroupSettings,
    consumer: { readonly stream: string; readonly name: string; readonly filter: string },
    start: StartFrom,
  ): Promise<void> {
    const { stream, name, filter } = consumer;
    const { leaseMs, maxAckPending } = settings;
    const limits = { ack_wait: leaseMs * msToNs, max_ack_pending: maxAckPending };
    let existing = await info(stream, name);
    if (existing === undefined) {
      try {
        const begin = await startAt(filter, start);
        await create(stream, name, { filter_subject: layout.toNats(filter), ...limits, ...begin });
        return;
      } catch (error) {
        // Another process may have created the consumer since, with another start position.
        existing = await info(stream, name);
        if (existing === undefined) throw error;
      }
    }
    const before = filterOf(existing);
    if (before !== filter) throw groupConflict(settings.name, { there: before, wanted: filter });
    const { ack_wait, max_ack_pending } = existing.config;
    if (ack_wait === limits.ack_wait && max_ack_pending === limits.max_ack_pending) return;
    await create(stream, name, { ...existing.config, ...limits });
  }

  const list = (stream: string): Promise<readonly ConsumerInfo[]> => wire.consumers('LIST', stream);

  const bus: BusConsumers = {
    list,
    filterOf,
    forget: (group) => void known.delete(group),
    async ensure(settings) {
      const { name: group, filters, from } = settings;
      const [filter = '', redoFilter = ''] = filters;
      await streams.ensure(filter);
      await streams.ensure(redoFilter);
      const stream = layout.streamOf(filter);
      const [newest, ...old] = await generations(group);
      if (newest !== undefined && newest.stream !== stream) {
        const existing = await info(newest.stream, newest.name);
        if (existing !== undefined) {
          throw groupConflict(group, { there: filterOf(existing), wanted: filter });
        }
      }
      // Older generations remain if a process died during a seek.
      for (const each of old) await drop(each.stream, each.name);
      const main = newest?.name ?? `${group}@1`;
      const redo = `${group}${redoSuffix}`;
      await ensureOne(settings, { stream, name: main, filter }, from);
      await ensureOne(settings, { stream: redoStream, name: redo, filter: redoFilter }, 'start');
      known.set(group, { stream, main, redoStream, redo });
    },
    async find(group) {
      const cached = known.get(group);
      if (cached !== undefined) return cached;
      const [newest] = await generations(group);
      if (newest === undefined) throw unknownGroup(group);
      const found = {
        stream: newest.stream,
        main: newest.name,
        redoStream,
        redo: `${group}${redoSuffix}`,
      };
      known.set(group, found);
      return found;
    },
    async seek(group, to) {
      bus.forget(group);
      const { stream, main } = await bus.find(group);
      const existing = await info(stream, main);
      if (existing === undefined) throw unknownGroup(group);
      const filter = filterOf(existing);
      const { ack_wait, max_ack_pending } = existing.config;
      const next = `${group}@${generationOf(main, group) + 1}`;
      await create(stream, next, {
        filter_subject: layout.toNats(filter),
        ack_wait,
        max_ack_pending,
        ...(await startAt(filter, to)),
      });
      await drop(stream, main);
      bus.forget(group);
    },
    async remove(group) {
      bus.forget(group);
      const all = await generations(group);
      for (const { stream, name } of all) await drop(stream, name);
      await drop(redoStream, `${group}${redoSuffix}`);
      return all.length > 0;
    },
    async groups() {
      const consumers = (await Promise.all(layout.streams.map(list))).flat();
      const newest = new Map<string, ConsumerInfo>();
      const redos = new Map<string, ConsumerInfo>();
      for (const consumer of consumers) {
        const [, group, generation] = /^(.+)@(\d+|redo)$/.exec(consumer.name) ?? [];
        if (group === undefined) continue;
        if (generation === 'redo') redos.set(group, consumer);
        const before = newest.get(group);
        const isNewer =
          generationOf(consumer.name, group) >
          (before === undefined ? 0 : generationOf(before.name, group));
        if (isNewer) newest.set(group, consumer);
      }
      return [...newest]
        .map(([name, consumer]) => {
          const redo = redos.get(name);
          return {
            name,
            subject: filterOf(consumer),
            leaseMs: consumer.config.ack_wait / msToNs,
            maxAckPending: consumer.config.max_ack_pending,
            lag: consumer.num_pending + (redo?.num_pending ?? 0),
            pending: consumer.num_ack_pending + (redo?.num_ack_pending ?? 0),
          };
        })
        .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
  return bus;
}

/** Returns 0 for a consumer that does not belong to this group. */
function generationOf(consumer: string, group: string): number {
  if (!consumer.startsWith(`${group}@`)) return 0;
  const text = consumer.slice(group.length + 1);
  return /^\d+$/.test(text) ? Number(text) : 0;
}
