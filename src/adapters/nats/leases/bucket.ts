// A bucket of NATS's key-value store as the leases need it: compare-and-set by revision, entries with
// the server's own time, and names by their beginning.

import type { KV } from '@nats-io/kv';
import { loadDriver } from '../../../foundation/load-driver.ts';
import type { NatsConnection } from '../connection/connection.ts';

export interface BucketEntry<Value> {
  readonly value: Value;
  readonly revision: number;
  /** By the server's clock. */
  readonly writtenAtMs: number;
}

export interface LeaseBucket {
  get<Value>(key: string): Promise<BucketEntry<Value> | undefined>;
  put(key: string, value: unknown): Promise<void>;
  /** Revision 0: there is none yet. False: somebody else was faster. */
  isSwapped(key: string, value: unknown, revision: number): Promise<boolean>;
  /** Everything in one folder, by its name in there. */
  read<Value>(folder: string): Promise<ReadonlyMap<string, BucketEntry<Value>>>;
  /** Without a trace, unless it was written again behind that revision. */
  remove(key: string, revision?: number): Promise<void>;
}

export interface LeaseBucketOptions {
  readonly bucket: string;
  readonly replicas: number;
  readonly timeoutMs: number;
}

/** What the server says to a compare-and-set that came too late. */
const wrongLastSequence = 10_071;

export async function openLeaseBucket(
  connection: NatsConnection,
  { bucket, replicas, timeoutMs }: LeaseBucketOptions,
): Promise<LeaseBucket> {
  const { Kvm } = await loadDriver('@nats-io/kv', () => import('@nats-io/kv'));
  const kv = await connection.ask((driver): Promise<KV> => {
    // Read from the leader: a copy may not know of the newest owner yet.
    const options = { history: 1, replicas, allow_direct: false, timeout: timeoutMs };
    return new Kvm(driver).create(bucket, options);
  });
  const subject = (key: string): string => `$KV.${bucket}.${key}`;

  async function api<T>(verb: 'INFO' | 'PURGE', body: object): Promise<T> {
    return connection.ask(async (driver) => {
      const name = `$JS.API.STREAM.${verb}.KV_${bucket}`;
      const answer = await driver.request(name, JSON.stringify(body), { timeout: timeoutMs });
      const said = answer.json<T & { readonly error?: { readonly description?: string } }>();
      if (said.error !== undefined) throw new Error(said.error.description ?? 'refused');
      return said;
    });
  }

  async function get<Value>(key: string): Promise<BucketEntry<Value> | undefined> {
    const entry = await connection.ask(() => kv.get(key));
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
      await connection.ask(() => kv.put(key, JSON.stringify(value), { timeout: timeoutMs }));
    },
    isSwapped: (key, value, revision) =>
      connection.ask(async () => {
        try {
          await kv.put(key, JSON.stringify(value), { previousSeq: revision, timeout: timeoutMs });
          return true;
        } catch (error) {
          if ((error as { readonly code?: unknown }).code === wrongLastSequence) return false;
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
