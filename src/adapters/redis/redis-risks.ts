// What a Redis is set to forget. A checkpoint in a database that keeps its word may have passed events
// whose documents a Redis has lost: nothing would bring them again but a rebuild.

import type { Cluster, Redis } from 'ioredis';
import type { RedisClient, RedisConnection } from './redis-connection.ts';

export type RedisSettings = Readonly<Record<string, string>>;

export interface RedisRisk {
  /** `all`: everything, at a restart. `last`: the last second, at a power loss. `any`: by eviction. */
  readonly loses: 'all' | 'last' | 'any';
  readonly setting: string;
}

export function redisRisks(settings: RedisSettings): readonly RedisRisk[] {
  const risks: RedisRisk[] = [];
  const {
    appendonly,
    appendfsync,
    maxmemory = '0',
    'maxmemory-policy': policy = 'noeviction',
  } = settings;
  if (appendonly === 'no') risks.push({ loses: 'all', setting: 'appendonly no' });
  else if (appendfsync !== undefined && appendfsync !== 'always') {
    risks.push({ loses: 'last', setting: `appendfsync ${appendfsync}` });
  }
  if (maxmemory !== '0' && policy !== 'noeviction') {
    risks.push({ loses: 'any', setting: `maxmemory-policy ${policy}` });
  }
  return risks;
}

/** Of all nodes; undefined where the server does not tell, as hosted ones do not. */
export async function readRedisRisks(
  connection: RedisConnection,
): Promise<readonly RedisRisk[] | undefined> {
  const names = ['appendonly', 'appendfsync', 'maxmemory', 'maxmemory-policy'];
  const found = new Map<string, RedisRisk>();
  for (const node of mastersOf(connection.client)) {
    try {
      const pairs = (await node.config('GET', ...(names as [string]))) as readonly string[];
      const settings = Object.fromEntries(
        names.flatMap((name) => {
          const at = pairs.indexOf(name);
          return at === -1 ? [] : [[name, pairs[at + 1] ?? '']];
        }),
      );
      for (const risk of redisRisks(settings)) found.set(risk.setting, risk);
    } catch {
      // Not allowed to ask, or away again: whoever writes next will hear of that.
      return undefined;
    }
  }
  return [...found.values()];
}

export function mastersOf(client: RedisClient): readonly Redis[] {
  return client.isCluster ? (client as Cluster).nodes('master') : [client as Redis];
}
