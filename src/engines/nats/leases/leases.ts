// Leases in a key-value bucket of NATS JetStream. Old servers have no time to live per key, so a lease stores its
// duration, counted from the server's write time. The current time is the server's too: the write time of an entry that
// is written for this purpose. No clock of a process is used.

import type { KV } from '@nats-io/kv';
import type { NatsConnection as Driver } from '@nats-io/transport-node';
import { parseSubscriptionName } from '../../../contracts/subscription-name.ts';
import { loadDriver } from '../../../foundation/load-driver.ts';
import type { LeaseStore } from '../../../subscriptions/subscription-storage.ts';
import {
  connectNats,
  natsDefaults,
  type NatsConnection,
  type NatsConnectionOptions,
} from '../connection/connection.ts';
import { apiErrorCodes } from '../connection/jetstream-wire.ts';

export interface NatsLeases extends LeaseStore, AsyncDisposable {}

export interface NatsLeasesOptions extends NatsConnectionOptions {
  /** Default: `millrace-leases`. A missing bucket is created. */
  readonly bucket?: string | undefined;
  /** Replicas of a bucket that is created. Default: 1. */
  readonly replicas?: number | undefined;
}

interface LeaseValue {
  readonly owner: string;
  readonly token: number;
  /** The duration of the lease; 0 if it was released. */
  readonly ttlMs: number;
}

interface WorkerValue {
  readonly ttlMs: number;
}

/** Retries of a compare-and-set; each failure means that another process succeeded. */
const roundsMax = 100;
const clockKey = 'clock';

/**
 * Leases in NATS, by URL or with your connection. Pass them to `startSubscription` as `leases`.
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

  /** Never ahead of the server's clock: a lease may seem to last one round trip longer, never shorter. */
  async function serverNow(): Promise<number> {
    await leases.put(clockKey, {});
    return (await leases.get(clockKey))?.writtenAtMs ?? 0;
  }

  /** Compares and sets; `next` returns undefined to leave the entry unchanged. */
  async function change(
    key: string,
    next: (current: BucketEntry<LeaseValue> | undefined) => LeaseValue | undefined,
  ): Promise<LeaseValue | undefined> {
    for (let round = 0; round < roundsMax; round += 1) {
      const current = await leases.get<LeaseValue>(key);
      const value = next(current);
      if (value === undefined) return undefined;
      if (await leases.compareAndSet(key, value, current?.revision ?? 0)) return value;
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
        // A lease that was renewed or taken since counts as held: its write time is later than `nowMs`.
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

/** Encodes a worker id, which may contain any character. */
function encodeWorker(worker: string): string {
  return Buffer.from(worker).toString('base64url');
}

function decodeWorker(text: string): string {
  return Buffer.from(text, 'base64url').toString();
}

/** An entry of the key-value bucket. */
interface BucketEntry<Value> {
  readonly value: Value;
  readonly revision: number;
  /** By the server's clock. */
  readonly writtenAtMs: number;
}

interface LeaseBucket {
  get<Value>(key: string): Promise<BucketEntry<Value> | undefined>;
  put(key: string, value: unknown): Promise<void>;
  /** Revision 0: the key does not exist. False: another process was faster. */
  compareAndSet(key: string, value: unknown, revision: number): Promise<boolean>;
  /** All entries of a folder, by their name in it. */
  read<Value>(folder: string): Promise<ReadonlyMap<string, BucketEntry<Value>>>;
  /** Purges the key, unless it was written again after that revision. */
  remove(key: string, revision?: number): Promise<void>;
}

interface LeaseBucketOptions {
  readonly bucket: string;
  readonly replicas: number;
  readonly timeoutMs: number;
}

async function openLeaseBucket(
  connection: NatsConnection,
  { bucket, replicas, timeoutMs }: LeaseBucketOptions,
): Promise<LeaseBucket> {
  const { Kvm } = await loadDriver('@nats-io/kv', () => import('@nats-io/kv'));
  const kv = await connection.run((driver): Promise<KV> => {
    // Reads from the leader: a replica may not have the newest owner.
    const options = { history: 1, replicas, allow_direct: false, timeout: timeoutMs };
    return new Kvm(driver).create(bucket, options);
  });
  const subject = (key: string): string => `$KV.${bucket}.${key}`;

  async function api<T>(verb: 'INFO' | 'PURGE', body: object): Promise<T> {
    return connection.run(async (driver) => {
      const name = `$JS.API.STREAM.${verb}.KV_${bucket}`;
      const message = await driver.request(name, JSON.stringify(body), { timeout: timeoutMs });
      const reply = message.json<T & { readonly error?: { readonly description?: string } }>();
      if (reply.error !== undefined)
        throw new Error(reply.error.description ?? 'the server rejected the request');
      return reply;
    });
  }

  async function get<Value>(key: string): Promise<BucketEntry<Value> | undefined> {
    const entry = await connection.run(() => kv.get(key));
    if (entry === null || entry.operation !== 'PUT') return undefined;
    return {
      value: entry.json<Value>(),
      revision: entry.revision,
      writtenAtMs: entry.created.getTime(),
    };
  }

  return {
    get,
    async put(key, value) {
      await connection.run(() => kv.put(key, JSON.stringify(value), { timeout: timeoutMs }));
    },
    compareAndSet: (key, value, revision) =>
      connection.run(async () => {
        try {
          await kv.put(key, JSON.stringify(value), { previousSeq: revision, timeout: timeoutMs });
          return true;
        } catch (error) {
          if ((error as { readonly code?: unknown }).code === apiErrorCodes.wrongLastSequence)
            return false;
          throw error;
        }
      }),
    async read<Value>(folder: string) {
      const filter = subject(`${folder}.>`);
      const { state } = await api<StreamState>('INFO', { subjects_filter: filter });
      const names = Object.keys(state.subjects ?? {}).map((name) => name.slice(filter.length - 1));
      const entries = await Promise.all(
        names.map(async (name) => [name, await get<Value>(`${folder}.${name}`)] as const),
      );
      return new Map(
        entries.flatMap(([name, entry]) => (entry === undefined ? [] : [[name, entry] as const])),
      );
    },
    async remove(key, revision) {
      const upTo = revision === undefined ? {} : { seq: revision + 1 };
      await api('PURGE', { filter: subject(key), ...upTo });
    },
  };
}

interface StreamState {
  readonly state: { readonly subjects?: Readonly<Record<string, number>> };
}
