// Administration of streams: list, trim, delete.

import type { StreamInfo, Trimmed, TrimOrder } from '../../../bus/bus.ts';
import type { BusEngine } from '../../../bus/bus-engine.ts';
import { compareSequences } from '../../../bus/sequence.ts';
import { eachOf } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import type { BusGroups } from './groups.ts';
import { matchesAny } from './registry.ts';

type Streams = Pick<BusEngine, 'streams' | 'trim' | 'deleteStream' | 'remove'>;

export function createBusStreams(context: RedisBusContext, groups: BusGroups): Streams {
  const { redis, keyspace, registry } = context;

  async function groupsOf(subject: string) {
    return (await groups.all()).filter(({ filters }) => matchesAny(filters, subject));
  }

  return {
    async streams(pattern, { after = '', limit }) {
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
