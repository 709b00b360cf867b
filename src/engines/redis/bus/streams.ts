// Administration of streams: list, trim, delete.

import type { StreamInfo, Trimmed, TrimOrder } from '../../../bus/bus.ts';
import { matchesFilter, type BusEngine } from '../../../bus/bus-engine.ts';
import { compareSequences } from '../../../bus/sequence.ts';
import { eachOf, textOf } from '../connection/engine.ts';
import { busScripts, type RedisBusContext } from './context.ts';
import { storedAtMsOf } from './entry.ts';
import { fullSubjects, matchesAny, type BusGroups } from './groups.ts';

type Streams = Pick<BusEngine, 'streams' | 'trim' | 'deleteStream' | 'remove'>;

export function createBusStreams(context: RedisBusContext, groups: BusGroups): Streams {
  const { calls, keyspace, registry } = context;

  async function groupsOf(subject: string) {
    return (await groups.all()).filter(({ filters }) => matchesAny(filters, subject));
  }

  return {
    async streams(pattern, { after = '', limit }) {
      const { subjects } = await registry.since(0);
      const named = [...new Set([...subjects, ...fullSubjects([pattern])])]
        .filter((each) => each > after && matchesFilter(pattern, each))
        .toSorted();
      const records = await groups.all();
      const infos: StreamInfo[] = [];
      // Registered streams may have been deleted.
      for (let at = 0; at < named.length && infos.length < limit; at += limit) {
        const found = await eachOf(named.slice(at, at + limit), async (subject) => {
          const matching = records.filter(({ filters }) => matchesAny(filters, subject));
          const natives = matching.map(({ native }) => native);
          const cells = await calls.run(busScripts.info, [keyspace.streamKey(subject)], natives);
          const names = matching.map(({ name }) => name);
          return cells === null ? [] : [infoOf(subject, cells as unknown[], names)];
        });
        infos.push(...found.flat());
      }
      return infos.slice(0, limit);
    },

    async trim(subject, order): Promise<Trimmed> {
      const groupsToRespect = order.evenUnacked === true ? [] : await groupsOf(subject);
      const { lengthMax = '', bytesMax = '' } = order;
      const natives = groupsToRespect.map(({ native }) => native);
      const values = [lowestKept(order), lengthMax, bytesMax, ...natives];
      const cells = await calls.run(busScripts.trim, [keyspace.streamKey(subject)], values);
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
      const deleted = await calls.run(
        busScripts.deleteStream,
        [key, keyspace.mark(key), ...leases],
        [],
      );
      return deleted === 1;
    },

    async remove(subject, sequences) {
      const ids = sequences.map((each) => (each.includes('-') ? each : `${each}-0`));
      const key = keyspace.streamKey(subject);
      return calls.ask((client) => client.xdel(key, ...ids));
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

function infoOf(subject: string, cells: readonly unknown[], names: readonly string[]): StreamInfo {
  const [length, first, last, bytes, ...counts] = cells;
  const [firstSequence, lastSequence] = [first, last].map((id) => textOf(id) || undefined);
  return {
    subject,
    length: Number(length),
    firstSequence,
    lastSequence,
    firstStoredAt: firstSequence === undefined ? undefined : new Date(storedAtMsOf(firstSequence)),
    lastStoredAt: lastSequence === undefined ? undefined : new Date(storedAtMsOf(lastSequence)),
    bytes: Number(bytes),
    groups: names.map((name, at) => ({
      name,
      lag: Number(counts[at * 2]),
      pending: Number(counts[at * 2 + 1]),
    })),
  };
}
