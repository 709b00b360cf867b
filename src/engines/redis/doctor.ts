// Checks whether a Redis supports what the adapter needs, and warns of settings that may lose data.

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
import { connectRedis, type RedisConnection } from './connection/connection.ts';
import { mastersOf, readRedisRisks, type RedisRisk } from './connection/risks.ts';

const versionMin = '6.2';

/** Writes one temporary key and deletes it. */
export async function examineRedis(
  url: string,
  {
    timeoutMs,
    nowMs,
    stores = 'documents',
  }: Examination & { readonly stores?: Stored | undefined },
): Promise<readonly Finding[]> {
  const key = `millrace:doctor:${randomUUID()}`;
  const checks: Checks<RedisConnection> = {
    reachable: reach,
    async permissions(connection) {
      // The adapter needs permission to run scripts, because all of its writes are scripts.
      const script =
        "redis.call('SET', KEYS[1], '1', 'PX', 60000) return redis.call('DEL', KEYS[1])";
      await connection.ask((client) => client.eval(script, 1, key));
      return [{ check: 'permissions', level: 'ok', detail: 'can write and run scripts' }];
    },
    settings: (connection) => settings(connection, stores),
    read: (connection) =>
      latencyOf('read', () => connection.ask((client) => client.get(key)), {
        slowMs: 20,
        remedy: 'Move Redis closer to the application: queries and leases wait for it.',
      }),
    async 'durable write'(connection) {
      const write = () => connection.ask((client) => client.set(key, '1', 'PX', 60_000));
      const remedy = 'Check the disk of the append-only file.';
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
    ...versions.map((version) => versionFinding('Redis', version, versionMin)),
    ...(isReplica
      ? [
          {
            check: 'writable',
            level: 'broken',
            detail: 'the server is a replica, which accepts no writes',
            remedy: 'Use the URL of the master.',
          } as const,
        ]
      : []),
    ...(isFull
      ? [
          {
            check: 'memory',
            level: 'warning',
            detail: 'more than 90 % of maxmemory is used',
            remedy: 'Raise maxmemory: a full Redis rejects writes.',
          } as const,
        ]
      : []),
  ];
}

const losses: Readonly<
  Record<RedisRisk['loses'], { readonly loss: string; readonly remedy: string }>
> = {
  all: { loss: 'a restart loses all data', remedy: 'appendonly yes and appendfsync always' },
  last: { loss: 'a power failure loses the last second', remedy: 'appendfsync always' },
  any: { loss: 'keys are evicted when memory is full', remedy: 'maxmemory-policy noeviction' },
};

type Stored = keyof typeof consequences;

const consequences = {
  documents: 'lost documents need a rebuild',
  messages: 'lost messages of the bus cannot be restored',
  checkpoints: 'reactors, sagas and outbox projectors stop if their checkpoints are lost',
} as const;

async function settings(connection: RedisConnection, stores: Stored): Promise<Finding[]> {
  const check = 'settings';
  const risks = await readRedisRisks(connection);
  if (risks === undefined) {
    const remedy = 'Make sure that it has appendonly yes, appendfsync always and noeviction.';
    return [{ check, level: 'unknown', detail: 'the server does not reveal its settings', remedy }];
  }
  if (risks.length === 0) {
    return [{ check, level: 'ok', detail: 'confirmed writes survive a power failure' }];
  }
  return risks.map(({ loses, setting }) => {
    const { loss, remedy: fix } = losses[loses];
    const remedy = `Set ${fix} in redis.conf; until then, ${consequences[stores]}.`;
    return { check, level: 'warning', detail: `${setting}: ${loss}`, remedy };
  });
}

const remedyOf = remedyBy(
  [
    /WRONGPASS|NOAUTH|invalid password|invalid username/i,
    'Check user and password in the URL: redis://user:password@host:6379',
  ],
  [/NOPERM/, 'Grant the user of the URL the permission: ACL SETUSER … ~* +@all -@admin'],
);
