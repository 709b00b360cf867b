// Leases in a key-value bucket of NATS JetStream. Old servers give keys no time to live, so a lease
// carries how long it holds, counted from when the server wrote it. "Now" is the server's as well:
// the time of an entry that was written just for this. No clock of a process is ever asked.

import type { NatsConnection as Driver } from '@nats-io/transport-node';
import { parseSubscriptionName } from '../../../contracts/subscription-name.ts';
import type { LeaseStore } from '../../../subscriptions/subscription-storage.ts';
import { openLeaseBucket, type BucketEntry } from './bucket.ts';
import { connectNats, natsDefaults, type NatsConnectionOptions } from '../connection/connection.ts';

export interface NatsLeases extends LeaseStore, AsyncDisposable {}

export interface NatsLeasesOptions extends NatsConnectionOptions {
  /** Default: `millrace-leases`. Created when it is missing. */
  readonly bucket?: string;
  /** Of the bucket, when it is created. Default: 1. */
  readonly replicas?: number;
}

interface LeaseValue {
  readonly owner: string;
  readonly token: number;
  /** 0: released. */
  readonly ttlMs: number;
}

interface WorkerValue {
  readonly ttlMs: number;
}

/** Whoever comes too late tries again: each time somebody else got on. */
const roundsMax = 100;
const clockKey = 'clock';

/**
 * Leases in NATS, by its URL or with a connection of your own. Give them to `startSubscription` as
 * `leases`.
 *
 * @example
 * import { natsLeases } from 'millrace/adapters/nats';
 *
 * await using leases = await natsLeases('nats://localhost:4222');
 * const key = { subscription: 'sub:core-lookup:currency-projection:v1', shard: 0 };
 * const lease = await leases.acquire(key, 'worker-1', 10_000);
 * if (lease.kind === 'acquired') console.log(lease.token);
 */
export async function natsLeases(
  target: string | Driver,
  options: NatsLeasesOptions = {},
): Promise<NatsLeases> {
  const { bucket = 'millrace-leases', replicas = 1, timeoutMs = natsDefaults.timeoutMs } = options;
  const connection = await connectNats(target, options);
  const leases = await openLeaseBucket(connection, { bucket, replicas, timeoutMs }).catch(
    async (error: unknown) => {
      await connection[Symbol.asyncDispose]();
      throw error;
    },
  );

  /** Never ahead of the server's clock: a lease may seem to last a round trip longer, not shorter. */
  async function serverNow(): Promise<number> {
    await leases.put(clockKey, {});
    return (await leases.get(clockKey))?.writtenAtMs ?? 0;
  }

  /** Decides on what is there now; undefined leaves it as it is. */
  async function change(
    key: string,
    next: (current: BucketEntry<LeaseValue> | undefined) => LeaseValue | undefined,
  ): Promise<LeaseValue | undefined> {
    for (let round = 0; round < roundsMax; round += 1) {
      const current = await leases.get<LeaseValue>(key);
      const value = next(current);
      if (value === undefined) return undefined;
      if (await leases.isSwapped(key, value, current?.revision ?? 0)) return value;
    }
    return undefined;
  }

  return {
    async acquire({ subscription, shard }, owner, ttlMs, { above = 0 } = {}) {
      const key = `${shardsOf(subscription)}.${shard}`;
      const found = await leases.get<LeaseValue>(key);
      const nowMs = found === undefined || found.value.ttlMs === 0 ? 0 : await serverNow();
      let leftMs = 1;
      const taken = await change(key, (current) => {
        // Renewed or taken since: that is later than this now, and so it counts as held.
        leftMs = current === undefined ? 0 : remaining(current, nowMs);
        if (leftMs > 0) return undefined;
        return { owner, token: Math.max(current?.value.token ?? 0, above) + 1, ttlMs };
      });
      return taken === undefined
        ? { kind: 'held', retryInMs: Math.max(1, Math.min(leftMs, found?.value.ttlMs ?? ttlMs)) }
        : { kind: 'acquired', token: taken.token };
    },
    async renew({ subscription, shard, token }, ttlMs) {
      const renewed = await change(`${shardsOf(subscription)}.${shard}`, (current) =>
        current?.value.token === token && current.value.ttlMs > 0
          ? { ...current.value, ttlMs }
          : undefined,
      );
      return renewed !== undefined;
    },
    async release({ subscription, shard, token }) {
      await change(`${shardsOf(subscription)}.${shard}`, (current) =>
        current?.value.token === token ? { ...current.value, ttlMs: 0 } : undefined,
      );
    },
    async list(subscription) {
      const entries = await leases.read<LeaseValue>(shardsOf(subscription));
      if (entries.size === 0) return [];
      const nowMs = await serverNow();
      return [...entries]
        .filter(([, { value }]) => value.ttlMs > 0)
        .map(([shard, entry]) => ({
          shard: Number(shard),
          owner: entry.value.owner,
          remainingMs: Math.max(0, remaining(entry, nowMs)),
        }))
        .toSorted((a, b) => a.shard - b.shard);
    },
    async announce(subscription, worker, ttlMs) {
      const folder = workersOf(subscription);
      const self = encodeWorker(worker);
      await leases.put(`${folder}.${self}`, { ttlMs } satisfies WorkerValue);
      const entries = await leases.read<WorkerValue>(folder);
      const nowMs = entries.get(self)?.writtenAtMs ?? 0;
      const alive: string[] = [];
      for (const [each, entry] of entries) {
        if (remaining(entry, nowMs) > 0) alive.push(decodeWorker(each));
        else await leases.remove(`${folder}.${each}`, entry.revision);
      }
      return alive.toSorted();
    },
    leave: (subscription, worker) =>
      leases.remove(`${workersOf(subscription)}.${encodeWorker(worker)}`),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

function remaining(
  { value, writtenAtMs }: BucketEntry<{ readonly ttlMs: number }>,
  nowMs: number,
): number {
  return value.ttlMs === 0 ? 0 : writtenAtMs + value.ttlMs - nowMs;
}

/** `sub:payments:ledger:v1` → `payments.ledger.v1.shards`: a key of NATS holds no colon. */
function shardsOf(subscription: string): string {
  const { service, name, version } = parseSubscriptionName(subscription);
  return `${service}.${name}.v${version}.shards`;
}

function workersOf(subscription: string): string {
  return shardsOf(subscription).replace(/shards$/, 'workers');
}

/** Workers may be called anything. */
function encodeWorker(worker: string): string {
  return Buffer.from(worker).toString('base64url');
}

function decodeWorker(text: string): string {
  return Buffer.from(text, 'base64url').toString();
}
