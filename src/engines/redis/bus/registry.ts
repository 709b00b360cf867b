// The registry of streams, where readers of a pattern find them. A stream is registered before its first message is
// stored. A lost registry is rebuilt by a scan of the keys.

import type { EngineCalls } from '../connection/engine.ts';
import { busScripts } from './context.ts';
import type { BusKeyspace } from './keyspace.ts';
import type { RedisClient } from '../connection/connection.ts';
import { mastersOf } from '../connection/risks.ts';

interface RegistryPage {
  readonly version: number;
  readonly subjects: readonly string[];
}

export interface BusRegistry {
  register(subjects: readonly string[]): Promise<void>;
  /** Subjects that were registered after a version; all subjects for version 0. */
  since(version: number): Promise<RegistryPage>;
  forget(subject: string): Promise<void>;
}

const scanCount = 1_000;

export function createBusRegistry(calls: EngineCalls, keyspace: BusKeyspace): BusRegistry {
  const { registry } = keyspace;

  async function read(since: number): Promise<RegistryPage | undefined> {
    // In this order, a subject that is registered between the two reads is returned now and again next time.
    const [version, subjects] = await calls.ask((client) =>
      Promise.all([
        client.zscore(registry, ''),
        client.zrangebyscore(registry, since === 0 ? '-inf' : `(${since}`, '+inf'),
      ]),
    );
    if (version === null) return undefined;
    return { version: Number(version), subjects: subjects.filter((each) => each !== '') };
  }

  async function rebuild(): Promise<void> {
    const keys = await calls.ask(async (client) => {
      const found = await Promise.all(mastersOf(client).map((node) => streamKeys(node, keyspace)));
      return found.flat();
    });
    const subjects = keys.flatMap((key) => keyspace.subjectOf(key) ?? []);
    await calls.run(busScripts.rebuild, [registry], [...new Set(subjects)]);
  }

  return {
    async register(subjects) {
      await calls.run(busScripts.register, [registry], subjects);
    },
    async since(version) {
      const page = await read(version);
      if (page !== undefined) return page;
      await rebuild();
      return (await read(0)) ?? { version: 0, subjects: [] };
    },
    async forget(subject) {
      await calls.ask((client) => client.zrem(registry, subject));
    },
  };
}

async function streamKeys(
  node: Pick<RedisClient, 'call'>,
  { prefix }: BusKeyspace,
): Promise<readonly string[]> {
  const match = `${prefix.replaceAll(/[\\*?[\]^]/g, String.raw`\$&`)}*`;
  const keys: string[] = [];
  for (let cursor = '0'; ;) {
    const [next, some] = (await node.call(
      ...(['SCAN', cursor, 'MATCH', match, 'COUNT', scanCount, 'TYPE', 'stream'] as const),
    )) as [string, readonly string[]];
    keys.push(...some);
    if (next === '0') return keys;
    cursor = next;
  }
}
