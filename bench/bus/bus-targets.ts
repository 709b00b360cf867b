// The engines of this benchmark, each with a server or a file that its cases share.

import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { openNats } from '../../src/engines/nats/index.ts';
import { openRedis } from '../../src/engines/redis/index.ts';
import { openSqlite } from '../../src/engines/sqlite/index.ts';
import type { Bus } from '../../src/bus/index.ts';
import { startNats, startRedis } from '../../src/testing/index.ts';
import type { BenchmarkContext } from '../benchmark.ts';
import { ownedRole } from '../../src/testing/owned-role.ts';
import { createDatabases } from '../store/databases.ts';

export interface BusTarget {
  readonly engine: string;
  /** Opens a new, empty bus. */
  open(): Promise<Bus>;
  /** The CPU time of the server so far; undefined if only this process works, or if it is unknown. */
  serverCpuMs?(): Promise<number>;
}

/** Redis syncs once a second, NATS every two minutes, SQLite at each commit. */
export function createBusTargets(context: BenchmarkContext): readonly BusTarget[] {
  const { signal, defer } = context;
  const newDatabase = createDatabases(context);
  let redis: ReturnType<typeof startRedis> | undefined;
  let nats: ReturnType<typeof startNats> | undefined;
  defer(async () => (await redis)?.[Symbol.asyncDispose]());
  defer(async () => (await nats)?.[Symbol.asyncDispose]());
  const redisUrl = async (): Promise<string> =>
    (await (redis ??= startRedis({ signal, appendOnly: 'everysec' }))).url;
  const newPrefix = (): string => randomUUID().slice(0, 8);
  return [
    {
      engine: 'redis',
      open: async () =>
        ownedRole(await openRedis(await redisUrl(), { keyPrefix: `${newPrefix()}:` }), 'bus'),
      serverCpuMs: async () => redisCpuMs(await redisUrl()),
    },
    {
      engine: 'nats',
      async open() {
        const { url } = await (nats ??= startNats({ signal }));
        return ownedRole(await openNats(url, { prefix: newPrefix() }), 'bus');
      },
    },
    {
      engine: 'sqlite',
      open: async () => ownedRole(await openSqlite(`sqlite:${await newDatabase('sqlite')}`), 'bus'),
    },
  ];
}

async function redisCpuMs(url: string): Promise<number> {
  const client = new Redis(url);
  try {
    const text = await client.info('cpu');
    const used = (field: string): number =>
      Number(new RegExp(`${field}:([\\d.]+)`).exec(text)?.[1] ?? Number.NaN);
    return 1_000 * (used('used_cpu_user') + used('used_cpu_sys'));
  } finally {
    client.disconnect();
  }
}
