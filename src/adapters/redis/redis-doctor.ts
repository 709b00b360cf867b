// Whether a Redis can do what the adapter needs, and what it is set to forget.

import { randomUUID } from 'node:crypto';
import {
  examineOver,
  latencyOf,
  remedyBy,
  skewOf,
  versionFinding,
  type Checks,
  type Examination,
  type Finding,
} from '../../foundation/finding.ts';
import { connectRedis, type RedisConnection } from './redis-connection.ts';
import { mastersOf, readRedisRisks, type RedisRisk } from './redis-risks.ts';

const versionLeast = '6.2';

/** Writes one key of its own, which is gone at the end. */
export async function examineRedis(
  url: string,
  { timeoutMs, nowMs, keeps = 'documents' }: Examination & { readonly keeps?: Kept },
): Promise<readonly Finding[]> {
  const key = `millrace:doctor:${randomUUID()}`;
  const checks: Checks<RedisConnection> = {
    reachable: reach,
    async permissions(connection) {
      // As the adapter works: scripts that write.
      const script =
        "redis.call('SET', KEYS[1], '1', 'PX', 60000) return redis.call('DEL', KEYS[1])";
      await connection.ask((client) => client.eval(script, 1, key));
      return [{ check: 'permissions', level: 'ok', detail: 'it may write, and run scripts' }];
    },
    settings: (connection) => settings(connection, keeps),
    read: (connection) =>
      latencyOf('read', () => connection.ask((client) => client.get(key)), {
        slowMs: 20,
        remedy: 'Put the Redis nearer: queries and leases wait for it.',
      }),
    async 'durable write'(connection) {
      const write = () => connection.ask((client) => client.set(key, '1', 'PX', 60_000));
      const remedy = 'Look at the disk of the append-only file.';
      const found = await latencyOf('durable write', write, { slowMs: 50, remedy });
      await connection.ask((client) => client.del(key));
      return found;
    },
    'clock skew': (connection) =>
      skewOf(nowMs, async () => {
        const [seconds, micros] = await connection.ask((client) => client.time());
        return Number(seconds) * 1_000 + Number(micros) / 1_000;
      }),
  };
  return examineOver(() => connectRedis(url, { timeoutMs }), checks, { timeoutMs, remedyOf });
}

async function reach({ client }: RedisConnection): Promise<Finding[]> {
  const nodes = mastersOf(client);
  const infos = await Promise.all(nodes.map((node) => node.info()));
  const field = (info: string, name: string): string =>
    new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
  const versions = [...new Set(infos.map((info) => field(info, 'redis_version')))];
  const isReplica = infos.some((info) => field(info, 'role') === 'slave');
  const isFull = infos.some((info) => {
    const max = Number(field(info, 'maxmemory'));
    return max > 0 && Number(field(info, 'used_memory')) > 0.9 * max;
  });
  return [
    {
      check: 'reachable',
      level: 'ok',
      detail: client.isCluster ? `a cluster of ${nodes.length} masters` : 'one server',
    },
    ...versions.map((version) => versionFinding('Redis', version, versionLeast)),
    ...(isReplica
      ? [
          {
            check: 'writable',
            level: 'broken',
            detail: 'it is a replica, which takes no writes',
            remedy: 'Name the master in the URL.',
          } as const,
        ]
      : []),
    ...(isFull
      ? [
          {
            check: 'memory',
            level: 'warning',
            detail: 'more than 90 % of maxmemory is used',
            remedy: 'Raise maxmemory: a full Redis refuses writes.',
          } as const,
        ]
      : []),
  ];
}

const losses: Readonly<
  Record<RedisRisk['loses'], { readonly what: string; readonly set: string }>
> = {
  all: { what: 'a restart forgets everything', set: 'appendonly yes and appendfsync always' },
  last: { what: 'a power loss takes the last second with it', set: 'appendfsync always' },
  any: { what: 'it drops keys when its memory is full', set: 'maxmemory-policy noeviction' },
};

type Kept = keyof typeof untilThen;

const untilThen = {
  documents: 'a rebuild brings documents back',
  messages: 'messages of the bus are lost with it for good',
} as const;

async function settings(connection: RedisConnection, keeps: Kept): Promise<Finding[]> {
  const check = 'settings';
  const risks = await readRedisRisks(connection);
  if (risks === undefined) {
    const remedy = 'See that it has appendonly yes, appendfsync always and noeviction.';
    return [{ check, level: 'unknown', detail: 'it does not tell its settings', remedy }];
  }
  if (risks.length === 0) {
    return [{ check, level: 'ok', detail: 'what it confirms survives a power loss' }];
  }
  return risks.map(({ loses, setting }) => {
    const { what, set } = losses[loses];
    const remedy = `Set ${set} in redis.conf; until then, ${untilThen[keeps]}.`;
    return { check, level: 'warning', detail: `${setting}: ${what}`, remedy };
  });
}

const remedyOf = remedyBy(
  [
    /WRONGPASS|NOAUTH|invalid password|invalid username/i,
    'Check user and password in the URL: redis://user:password@host:6379',
  ],
  [/NOPERM/, 'Let the user of the URL do it: ACL SETUSER … ~* +@all -@admin'],
);
