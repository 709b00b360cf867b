// A key-value bucket of jobs or leases. A batch writes many keys at once, each with its expected sequence, and gets all
// replies over one inbox. The KV client of NATS cannot do that.

import { batchesOf } from '../../../foundation/async/batches-of.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { BusLayout } from '../bus/layout.ts';
import type { BusStreams, StreamState } from '../bus/streams.ts';
import { natsUnavailable } from './connection.ts';
import {
  isApiError,
  hasNoResponders,
  apiErrorCodes,
  unlessMissing,
  type ApiError,
  type JetStreamWire,
  type Outgoing,
} from './jetstream-wire.ts';

export interface BucketWrite {
  readonly key: string;
  /** The content; `''` is the marker of a deleted key. */
  readonly data: string;
  /** The expected sequence of the key's newest message; 0: the key must not exist; undefined: no check. */
  readonly expected?: number | undefined;
}

interface BucketMessage {
  readonly key: string;
  readonly seq: number;
  readonly text: string;
  /** By the server's clock. */
  readonly writtenAtMs: number;
}

export interface Bucket {
  readonly layout: BusLayout;
  /** For the reader of the bucket. `ensure` creates a missing bucket. */
  readonly streams: BusStreams;
  /** Returns the sequence of each write; undefined if another process was faster. */
  write(writes: readonly BucketWrite[]): Promise<readonly (number | undefined)[]>;
  /** The newest message of each key, including markers, read from the leader. */
  get(keys: readonly string[]): Promise<readonly (BucketMessage | undefined)[]>;
  at(seqs: readonly number[]): Promise<readonly (BucketMessage | undefined)[]>;
  /** Returns a page of the keys with a prefix such as `value.`; undefined after the last page. */
  keys(prefix: string, offset: number): Promise<readonly string[] | undefined>;
  /** Deletes messages by sequence, so that a key that was written again is not deleted. */
  erase(seqs: readonly number[]): Promise<void>;
  /** Deletes a key, unless it was written again after that sequence. */
  purge(key: string, seq?: number): Promise<void>;
}

/** The maximum numbers of writes and of bytes in flight. */
const inFlightMax = { countMax: 1_000, sizeMax: 4_000_000 } as const;
/** The first retry creates a bucket that the server has lost. */
const triesMax = 3;
const windowNs = 120_000_000_000;

export function createBucket(
  wire: JetStreamWire,
  options: {
    readonly name: string;
    readonly replicas: number;
    readonly observer: Observer;
    /** Called when the bucket was created again: everything that was read from it is outdated. */
    readonly onRecreated?: (() => void) | undefined;
  },
): Bucket {
  const { name, replicas, observer, onRecreated } = options;
  const stream = `KV_${name}`;
  const front = `$KV.${name}.`;
  let created: string | undefined;
  let isEnsured = false;

  const layout: BusLayout = {
    streams: [stream],
    streamOf: () => stream,
    toNats: (key) => `${front}${key}`,
    fromNats: (subject) => (subject.startsWith(front) ? subject.slice(front.length) : undefined),
    coverOf: () => `${front}>`,
  };

  async function info(body: object = {}): ReturnType<BusStreams['info']> {
    const found = await unlessMissing(() =>
      wire.request<StreamState>(`STREAM.INFO.${stream}`, body),
    );
    if (found === undefined) {
      isEnsured = false;
      return undefined;
    }
    if (created !== undefined && found.created !== created) {
      observer.log?.warn({ bucket: name }, 'bucket was lost and created again');
      onRecreated?.();
    }
    created = found.created;
    return found;
  }

  async function ensure(): Promise<void> {
    if (isEnsured) return;
    if ((await info()) === undefined) {
      try {
        await wire.request(`STREAM.CREATE.${stream}`, bucketStream(stream, front, replicas));
      } catch (error) {
        // Another process has created the bucket since.
        if (!isApiError(error, apiErrorCodes.streamNameInUse)) throw error;
      }
      if ((await info()) === undefined)
        throw natsUnavailable(`the stream '${stream}' does not exist`);
    }
    isEnsured = true;
  }

  function outgoing({ key, data, expected }: BucketWrite): Outgoing {
    const headers = wire.headers();
    if (expected !== undefined) {
      headers.set('Nats-Expected-Last-Subject-Sequence', String(expected));
    }
    if (data === '') headers.set('KV-Operation', 'DEL');
    return { subject: `${front}${key}`, data, headers };
  }

  async function writeSome(
    writes: readonly BucketWrite[],
  ): Promise<readonly (number | undefined)[]> {
    for (let round = 0; round < triesMax; round += 1) {
      await ensure();
      const replies = await wire.requestAll(writes.map(outgoing));
      if (replies.some(hasNoResponders)) {
        // No stream covers the subject: no write was stored.
        isEnsured = false;
        continue;
      }
      return replies.map((reply) => {
        const { seq, error } = reply.json<{ readonly seq: number; readonly error?: ApiError }>();
        if (error === undefined) return seq;
        if (error.err_code === apiErrorCodes.wrongLastSequence) return undefined;
        throw natsUnavailable(error.description ?? 'the server rejected the write');
      });
    }
    throw natsUnavailable('no stream covers the bucket');
  }

  async function getAll(
    queries: readonly object[],
  ): Promise<readonly (BucketMessage | undefined)[]> {
    if (queries.length === 0) return [];
    await ensure();
    const messages = await wire
      .getMessages(queries.map((query) => ({ stream, query })))
      .catch((error: unknown) => {
        if (!isApiError(error, apiErrorCodes.streamNotFound)) throw error;
        isEnsured = false;
        return queries.map(() => undefined);
      });
    return messages.map(
      (message) =>
        message && {
          key: message.subject.slice(front.length),
          seq: message.seq,
          text: Buffer.from(message.data ?? '', 'base64').toString(),
          writtenAtMs: Date.parse(message.time),
        },
    );
  }

  return {
    layout,
    streams: {
      ensure,
      info: () => info(),
      forget: () => {
        isEnsured = false;
      },
    },
    async write(writes) {
      const seqs: (number | undefined)[] = [];
      const sizeOf = ({ data }: BucketWrite): number => data.length;
      for (const batch of batchesOf(writes, { ...inFlightMax, sizeOf })) {
        seqs.push(...(await writeSome(batch)));
      }
      return seqs;
    },
    get: (keys) => getAll(keys.map((key) => ({ last_by_subj: `${front}${key}` }))),
    at: (seqs) => getAll(seqs.map((seq) => ({ seq }))),
    async keys(prefix, offset) {
      await ensure();
      const found = await info({ subjects_filter: `${front}${prefix}>`, offset });
      const subjects = Object.keys(found?.state.subjects ?? {});
      return subjects.length === 0 ? undefined : subjects.map((each) => each.slice(front.length));
    },
    async erase(seqs) {
      if (seqs.length > 0) await wire.deleteMessages(stream, seqs);
    },
    async purge(key, seq) {
      const end = seq === undefined ? {} : { seq: seq + 1 };
      const body = { filter: `${front}${key}`, ...end };
      await unlessMissing(() => wire.request(`STREAM.PURGE.${stream}`, body));
    },
  };
}

/** The settings are those of the KV client of NATS, except that single messages may be deleted. */
function bucketStream(name: string, front: string, replicas: number): object {
  return {
    name,
    subjects: [`${front}>`],
    retention: 'limits',
    storage: 'file',
    max_msgs_per_subject: 1,
    max_msgs: -1,
    max_bytes: -1,
    max_age: 0,
    // A full bucket rejects new writes.
    discard: 'new',
    num_replicas: replicas,
    duplicate_window: windowNs,
    allow_rollup_hdrs: true,
    allow_direct: false,
  };
}
