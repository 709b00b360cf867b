// Which streams there are. A stream is registered before its first message is stored, so that whoever
// reads by a pattern finds it; a registry that was lost is made anew from the streams themselves.

import { busScripts } from './redis-bus-scripts.ts';
import type { BusCalls } from './redis-bus-calls.ts';
import type { BusSpace } from './redis-bus-space.ts';
import type { RedisClient } from './redis-connection.ts';
import { mastersOf } from './redis-risks.ts';

interface RegistryPage {
  readonly version: number;
  readonly subjects: readonly string[];
}

export interface BusRegistry {
  register(subjects: readonly string[]): Promise<void>;
  /** Those that came after a version; all with 0. */
  since(version: number): Promise<RegistryPage>;
  forget(subject: string): Promise<void>;
}

const scanCount = 1_000;

export function createBusRegistry(calls: BusCalls, space: BusSpace): BusRegistry {
  const { registry } = space;

  async function read(since: number): Promise<RegistryPage | undefined> {
    // Asked for in this order: what comes in between is told now, and once more the next time.
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
      const found = await Promise.all(mastersOf(client).map((node) => streamKeys(node, space)));
      return found.flat();
    });
    const subjects = keys.flatMap((key) => space.subjectOf(key) ?? []);
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
  { prefix }: BusSpace,
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
