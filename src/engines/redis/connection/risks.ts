// Settings with which Redis may lose data. If Redis loses documents, the checkpoint in the event store has
// already passed their events, and only a rebuild restores them.

import type { Cluster, Redis } from 'ioredis';
import type { Observer } from '../../../foundation/observer.ts';
import type { RedisClient, RedisConnection } from './connection.ts';

export type RedisSettings = Readonly<Record<string, string>>;

export interface RedisRisk {
  /** `all`: everything at a restart. `last`: the last second at a power loss. `any`: any key, by eviction. */
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

/** Checks all nodes. Returns undefined if the server rejects `CONFIG GET`, as hosted servers do. */
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
      // `CONFIG GET` is not permitted, or the connection was lost. The next command reports a lost connection.
      return undefined;
    }
  }
  return [...found.values()];
}

export function warnOfRisks(
  risks: readonly RedisRisk[] | undefined,
  observer: Observer | undefined,
  warning: string,
): void {
  const settings = (risks ?? []).map(({ setting }) => setting).join(', ');
  if (settings !== '') observer?.log?.warn({ settings }, warning);
}

export function mastersOf(client: RedisClient): readonly Redis[] {
  return client.isCluster ? (client as Cluster).nodes('master') : [client as Redis];
}
