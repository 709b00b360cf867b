// The bus over Redis Streams, on one server or a cluster.

import type { BusCapabilities, StreamInfo, Trimmed, TrimOrder } from '../../../bus/bus.ts';
import type { BusEngine } from '../../../bus/bus-engine.ts';
import { compareSequences } from '../../../bus/sequence.ts';
import { systemClock, type Clock } from '../../../foundation/clock.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { eachOf } from '../connection/engine.ts';
import { createAppender } from './append.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import { createBusFetch } from './fetch.ts';
import { createBusGroups, type BusGroups } from './groups.ts';
import { createBusKeyspace } from './keyspace.ts';
import { createBusRead } from './read.ts';
import { createBusRegistry, fullSubjects, matchesAny } from './registry.ts';
import { createBusSettle } from './settle.ts';
import { createBusWakes } from './wakes.ts';

interface RedisBusOptions {
  readonly clock?: Clock | undefined;
  readonly keyPrefix?: string | undefined;
}

const capabilities: BusCapabilities = {
  durable: true,
  crossProcess: true,
  atomicBatch: false,
  fencedAcks: true,
  patternPositions: false,
  uncountedRelease: true,
  pendingList: true,
  streamBytes: true,
};

export function redisBusEngine(
  redis: RedisConnection,
  { clock = systemClock, keyPrefix: prefix = '' }: RedisBusOptions = {},
): BusEngine {
  const keyspace = createBusKeyspace({ isCluster: redis.client.isCluster, prefix });
  const registry = createBusRegistry(redis, keyspace);
  const wakes = createBusWakes(redis.client, keyspace.channel);
  return busEngineOf({ redis, keyspace, registry, wakes, clock });
}

function busEngineOf(context: RedisBusContext): BusEngine {
  const { redis, keyspace, registry, wakes } = context;
  const append = createAppender(redis, keyspace, registry);
  const groups = createBusGroups(context);
  const fetching = createBusFetch(context, groups);
  const settle = createBusSettle(context, append, fetching.setPending);
  wakes.on(fetching.onWake);
  return {
    capabilities,
    append: (entries, { dedupeWindowMs }) => append(entries, dedupeWindowMs),
    async ensureGroup(settings) {
      fetching.addGroup(settings, await groups.ensure(settings));
    },
    fetch: fetching.fetch,
    settle,
    read: createBusRead(context),
    ...createStreamAdmin(context, groups),
    groups: () => groups.infos(),
    pending: (name, limit) => groups.pending(name, limit),
    seek: (name, to) => groups.seek(name, to),
    deleteGroup: (name) => groups.delete(name),
    async [Symbol.asyncDispose]() {
      await wakes[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}

type StreamAdmin = Pick<BusEngine, 'streams' | 'trim' | 'deleteStream' | 'remove'>;

function createStreamAdmin(context: RedisBusContext, groups: BusGroups): StreamAdmin {
  const { redis, keyspace, registry } = context;

  async function groupsOf(subject: string) {
    return (await groups.all()).filter(({ filters }) => matchesAny(filters, subject));
  }

  return {
    async streams(pattern, { after = '', limit }) {
      if (fullSubjects([pattern]).length === 0) await registry.discover();
      const named = (await registry.matching([pattern])).filter((each) => each > after);
      const records = await groups.all();
      const infos: StreamInfo[] = [];
      // Registered streams may have been deleted.
      for (let at = 0; at < named.length && infos.length < limit; at += limit) {
        const page = named.slice(at, at + limit);
        const found = await eachOf(page, (subject) => groups.streamInfo(subject, records));
        infos.push(...found.filter((info) => info !== undefined));
      }
      return infos.slice(0, limit);
    },

    async trim(subject, order): Promise<Trimmed> {
      const groupsToRespect = order.evenUnacked === true ? [] : await groupsOf(subject);
      const { lengthMax = '', bytesMax = '' } = order;
      const natives = groupsToRespect.map(({ native }) => native);
      const values = [lowestKept(order), lengthMax, bytesMax, ...natives];
      const cells = await redis.runForBytes(busScripts.trim, [keyspace.streamKey(subject)], values);
      const [removed, heldBack] = cells as readonly [number, number];
      return { removed, heldBack };
    },

    async deleteStream(subject) {
      const key = keyspace.streamKey(subject);
      const domain = keyspace.domainOf(key);
      const matching = await groupsOf(subject);
      // Deregister first: a later publish finds no mark and registers the stream again.
      await registry.forget(subject);
      const leases = matching.flatMap(({ native }) => keyspace.leases(domain, native));
      const deleted = await redis.runForBytes(
        busScripts.deleteStream,
        [key, keyspace.mark(key), ...leases],
        [],
      );
      return deleted === 1;
    },

    async remove(subject, sequences) {
      const ids = sequences.map((each) => (each.includes('-') ? each : `${each}-0`));
      const key = keyspace.streamKey(subject);
      return redis.ask((client) => client.xdel(key, ...ids));
    },
  };
}

function lowestKept({ storedBefore, beforeSequence }: TrimOrder): string {
  const ids = [
    ...(storedBefore === undefined ? [] : [`${Math.max(0, storedBefore.getTime())}-0`]),
    ...(beforeSequence === undefined ? [] : [`${beforeSequence}-0`.split('-', 2).join('-')]),
  ];
  return ids.toSorted(compareSequences).at(-1) ?? '';
}
