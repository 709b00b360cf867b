// The registry of streams, where readers of a pattern find them. A stream is registered before its first message is
// stored; one that only other programs write to is found by a scan of the keys, which also rebuilds a lost registry.

import { matchesFilter } from '../../../bus/bus-engine.ts';
import { subjectRootDefault } from '../../../contracts/subjects.ts';
import type { RedisConnection } from '../connection/connection.ts';
import { escapeGlob, scanKeys } from '../connection/engine.ts';
import { busScripts } from './context.ts';
import type { BusKeyspace } from './keyspace.ts';

/** Less than the interval of the bus sweeper, which lists all streams each minute. */
const searchEveryMs = 50_000;

interface RegistryPage {
  readonly version: number;
  readonly subjects: readonly string[];
}

export interface BusRegistry {
  register(subjects: readonly string[]): Promise<void>;
  /** Registers the streams that only other programs write to: one process scans all keys, at most once a minute. */
  discover(): Promise<void>;
  /** Subjects that were registered after a version; all subjects for version 0. */
  since(version: number): Promise<RegistryPage>;
  /** Registered subjects that match a filter, and all subjects that the filters name in full; sorted. */
  matching(filters: readonly string[]): Promise<string[]>;
  forget(subject: string): Promise<void>;
}

export function createBusRegistry(redis: RedisConnection, keyspace: BusKeyspace): BusRegistry {
  const { registry } = keyspace;

  async function read(after: number): Promise<RegistryPage | undefined> {
    // Read the version first: a subject that is registered between the two reads is then returned twice, not skipped.
    const [version, subjects] = await redis.ask((client) =>
      Promise.all([
        client.zscore(registry, ''),
        client.zrangebyscore(registry, after === 0 ? '-inf' : `(${after}`, '+inf'),
      ]),
    );
    if (version === null) return undefined;
    return { version: Number(version), subjects: subjects.filter((each) => each !== '') };
  }

  async function rebuild(): Promise<void> {
    const keys = await scanKeys(redis, `${escapeGlob(keyspace.prefix)}*`, 'stream');
    const subjects = keys.flatMap((key) => keyspace.subjectOf(key) ?? []);
    await redis.runForBytes(busScripts.rebuild, [registry], [...new Set(subjects)]);
  }

  async function discover(): Promise<void> {
    const { searched, prefix } = keyspace;
    const started = await redis.ask((client) =>
      client.set(searched, '', 'PX', searchEveryMs, 'NX'),
    );
    if (started === null) return;
    // Only the root of the subjects: BullMQ and other libraries also have streams.
    const keys = await scanKeys(redis, `${escapeGlob(prefix)}${subjectRootDefault}:*`, 'stream');
    const known = new Set((await since(0)).subjects);
    const found = keys.flatMap((key) => keyspace.subjectOf(key) ?? []);
    const unknown = found.filter((subject) => !known.has(subject));
    if (unknown.length > 0) await register(unknown);
  }

  async function since(version: number): Promise<RegistryPage> {
    const page = await read(version);
    if (page !== undefined) return page;
    await rebuild();
    return (await read(0)) ?? { version: 0, subjects: [] };
  }

  async function register(subjects: readonly string[]): Promise<void> {
    await redis.runForBytes(busScripts.register, [registry], subjects);
  }

  return {
    since,
    register,
    discover,
    async matching(filters) {
      const { subjects } = await since(0);
      const matching = subjects.filter((each) => matchesAny(filters, each));
      return [...new Set([...matching, ...fullSubjects(filters)])].toSorted();
    },
    async forget(subject) {
      await redis.ask((client) => client.zrem(registry, subject));
    },
  };
}

export function matchesAny(filters: readonly string[], subject: string): boolean {
  return filters.some((filter) => matchesFilter(filter, subject));
}

export function fullSubjects(filters: readonly string[]): string[] {
  return filters.filter((filter) => !/(?:^|\.)[*>](?:\.|$)/.test(filter));
}
