// Leases in a key-value bucket of NATS JetStream. Old servers have no time to live per key, so a lease stores its
// duration, counted from the server's write time. The current time is the server's too: the write time of an entry that
// is written for this purpose. No clock of a process is used.

import { parseStored } from '../../../foundation/parse-json.ts';
import { parseSubscriptionName } from '../../../contracts/subscription-name.ts';
import type { LeaseStore } from '../../../subscriptions/subscription-storage.ts';
import type { Bucket } from '../connection/bucket.ts';

interface LeaseValue {
  readonly owner: string;
  readonly token: number;
  /** The duration of the lease; 0 if it was released. */
  readonly ttlMs: number;
}

interface WorkerValue {
  readonly ttlMs: number;
}

interface BucketEntry<Value> {
  readonly value: Value;
  readonly revision: number;
  /** By the server's clock. */
  readonly writtenAtMs: number;
}

/** Retries of a compare-and-set; each failure means that another process succeeded. */
const roundsMax = 100;
const clockKey = 'clock';
/** Stands for a damaged lease, which is free. The storage rejects the writes of its former owner (`above`). */
const released = { owner: '', token: 0, ttlMs: 0 };

export function natsLeases(bucket: Bucket): LeaseStore {
  async function read<Value>(keys: readonly string[]): Promise<Map<string, BucketEntry<Value>>> {
    const entries = new Map<string, BucketEntry<Value>>();
    for (const message of await bucket.get(keys)) {
      // An empty text marks a deleted key.
      if (message === undefined || message.text === '') continue;
      const { key, text, seq: revision, writtenAtMs } = message;
      const value = (parseStored(text) ?? released) as Value;
      entries.set(key, { value, revision, writtenAtMs });
    }
    return entries;
  }

  async function readFolder<Value>(folder: string): Promise<Map<string, BucketEntry<Value>>> {
    return read<Value>((await bucket.keys(`${folder}.`, 0)) ?? []);
  }

  /** Revision 0: the key does not exist. False: another process was faster. */
  async function put(key: string, value: object, revision?: number): Promise<boolean> {
    const data = JSON.stringify(value);
    const [seq] = await bucket.write([{ key, data, expected: revision }]);
    return seq !== undefined;
  }

  /** Never ahead of the server's clock: a lease may seem to last one round trip longer, never shorter. */
  async function serverNow(): Promise<number> {
    await put(clockKey, {});
    return (await read([clockKey])).get(clockKey)?.writtenAtMs ?? 0;
  }

  /** Compares and sets; `next` returns undefined to leave the entry unchanged. */
  async function change(
    key: string,
    next: (current: BucketEntry<LeaseValue> | undefined) => LeaseValue | undefined,
  ): Promise<LeaseValue | undefined> {
    for (let round = 0; round < roundsMax; round += 1) {
      const current = (await read<LeaseValue>([key])).get(key);
      const value = next(current);
      if (value === undefined) return undefined;
      if (await put(key, value, current?.revision ?? 0)) return value;
    }
    return undefined;
  }

  return {
    async acquire({ subscription, shard }, owner, ttlMs, { above = 0 } = {}) {
      const key = `${shardsOf(subscription)}.${shard}`;
      const found = (await read<LeaseValue>([key])).get(key);
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
      const entries = await readFolder<LeaseValue>(shardsOf(subscription));
      if (entries.size === 0) return [];
      const nowMs = await serverNow();
      return [...entries]
        .filter(([, { value }]) => value.ttlMs > 0)
        .map(([key, entry]) => ({
          shard: Number(nameIn(key)),
          owner: entry.value.owner,
          remainingMs: Math.max(0, remaining(entry, nowMs)),
        }))
        .toSorted((a, b) => a.shard - b.shard);
    },
    async announce(subscription, worker, ttlMs) {
      const self = workerKey(subscription, worker);
      await put(self, { ttlMs } satisfies WorkerValue);
      const entries = await readFolder<WorkerValue>(workersOf(subscription));
      const nowMs = entries.get(self)?.writtenAtMs ?? 0;
      const alive: string[] = [];
      for (const [key, entry] of entries) {
        if (remaining(entry, nowMs) > 0) alive.push(workerOf(key));
        else await bucket.purge(key, entry.revision);
      }
      return alive.toSorted();
    },
    leave: (subscription, worker) => bucket.purge(workerKey(subscription, worker)),
    async workers(subscription) {
      const entries = await readFolder<WorkerValue>(workersOf(subscription));
      if (entries.size === 0) return [];
      const nowMs = await serverNow();
      return [...entries]
        .map(([key, entry]) => ({ worker: workerOf(key), remainingMs: remaining(entry, nowMs) }))
        .filter(({ remainingMs }) => remainingMs > 0)
        .toSorted((a, b) => (a.worker < b.worker ? -1 : 1));
    },
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

/** The worker id is encoded, because it may contain any character. */
function workerKey(subscription: string, worker: string): string {
  return `${workersOf(subscription)}.${Buffer.from(worker).toString('base64url')}`;
}

function workerOf(key: string): string {
  return Buffer.from(nameIn(key), 'base64url').toString();
}

/** The last token of a key. */
function nameIn(key: string): string {
  return key.slice(key.lastIndexOf('.') + 1);
}
