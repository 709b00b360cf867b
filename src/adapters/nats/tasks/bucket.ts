// The key-value bucket that jobs stand in. Written past NATS's own client of it: many keys at once, each
// with the sequence that it was decided on, all answered over one inbox.

import { MillraceError } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { BusLayout } from '../bus/layout.ts';
import type { BusStreams } from '../bus/streams.ts';
import {
  busUnavailable,
  isRefused,
  isUnanswered,
  refusalOf,
  refusals,
  type ApiError,
  type JetStreamWire,
  type Outgoing,
} from '../connection/jetstream-wire.ts';

interface BucketWrite {
  readonly key: string;
  /** `''`: a marker, the key is gone. */
  readonly data: string;
  /** Of the key's newest message, 0: there is none; undefined: whatever is there. */
  readonly expected?: number | undefined;
}

interface BucketMessage {
  readonly key: string;
  readonly seq: number;
  readonly text: string;
}

export interface TaskBucket {
  readonly layout: BusLayout;
  /** For the reader of it: made where it is missing. */
  readonly streams: BusStreams;
  /** The sequence of each; undefined: another one was quicker. */
  write(writes: readonly BucketWrite[]): Promise<readonly (number | undefined)[]>;
  /** The newest of each key, markers too. Asked of the leader. */
  get(keys: readonly string[]): Promise<readonly (BucketMessage | undefined)[]>;
  at(seqs: readonly number[]): Promise<readonly (BucketMessage | undefined)[]>;
  /** All keys below a front such as `value.`, a page at a time; undefined: that was the last one. */
  keys(front: string, offset: number): Promise<readonly string[] | undefined>;
  /** By sequence: what was written again since stays. */
  erase(seqs: readonly number[]): Promise<void>;
}

interface Got {
  readonly error?: ApiError;
  readonly message?: { readonly subject: string; readonly seq: number; readonly data?: string };
}

/** On its way to the server at once. */
const bytesAtOnce = 4_000_000;
const writesAtOnce = 1_000;
/** What the server has lost is made again at the first. */
const triesMax = 3;
const windowNs = 120_000_000_000;

export function createTaskBucket(
  wire: JetStreamWire,
  options: {
    readonly bucket: string;
    readonly replicas: number;
    readonly observer: Observer;
    /** It is another one now: what was known of it is of no worth. */
    readonly onAnew: () => void;
  },
): TaskBucket {
  const { bucket, replicas, observer, onAnew } = options;
  const stream = `KV_${bucket}`;
  const front = `$KV.${bucket}.`;
  let created: string | undefined;
  let isEnsured = false;

  const layout: BusLayout = {
    streams: [stream],
    streamOf: () => stream,
    toNats: (key) => `${front}${key}`,
    fromNats: (subject) => (subject.startsWith(front) ? subject.slice(front.length) : undefined),
    coverOf: () => `${front}>`,
  };

  async function info(): ReturnType<BusStreams['info']> {
    try {
      const found = await wire.ask<NonNullable<Awaited<ReturnType<BusStreams['info']>>>>(
        `STREAM.INFO.${stream}`,
      );
      if (created !== undefined && found.created !== created) {
        observer.log?.warn({ bucket }, 'bucket of tasks was gone and is another one now');
        onAnew();
      }
      created = found.created;
      return found;
    } catch (error) {
      if (isRefused(error, refusals.streamNotFound)) return undefined;
      throw error;
    }
  }

  async function ensure(): Promise<void> {
    if (isEnsured) return;
    if ((await info()) === undefined) {
      try {
        await wire.ask(`STREAM.CREATE.${stream}`, bucketStream(stream, front, replicas));
      } catch (error) {
        // Somebody else made it meanwhile.
        if (!isRefused(error, refusals.streamNameInUse)) throw error;
      }
      if ((await info()) === undefined) throw busUnavailable(`there is no stream '${stream}'`);
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
      const answers = await wire.exchange(writes.map(outgoing));
      if (answers.some(isUnanswered)) {
        // No stream took it: none of them has happened.
        isEnsured = false;
        continue;
      }
      return answers.map((answer) => {
        const { seq, error } = answer.json<{ readonly seq: number; readonly error?: ApiError }>();
        if (error === undefined) return seq;
        if (error.err_code === refusals.wrongLastSequence) return undefined;
        throw busUnavailable(error.description ?? 'refused');
      });
    }
    throw busUnavailable('no stream takes what is written');
  }

  async function ask(bodies: readonly object[]): Promise<readonly (BucketMessage | undefined)[]> {
    if (bodies.length === 0) return [];
    await ensure();
    const verb = `STREAM.MSG.GET.${stream}`;
    const answers = await wire.askAll<Got>(bodies.map((body) => ({ verb, body })));
    return answers.map(({ error, message }) => {
      if (message === undefined) {
        if (error?.err_code === refusals.streamNotFound) isEnsured = false;
        else if (error?.err_code !== refusals.messageNotFound) throw refusalOf(error ?? {});
        return undefined;
      }
      return {
        key: message.subject.slice(front.length),
        seq: message.seq,
        text: Buffer.from(message.data ?? '', 'base64').toString(),
      };
    });
  }

  return {
    layout,
    streams: {
      ensure,
      info,
      forget: () => {
        isEnsured = false;
      },
    },
    async write(writes) {
      const seqs: (number | undefined)[] = [];
      for (const chunk of chunksOf(writes)) seqs.push(...(await writeSome(chunk)));
      return seqs;
    },
    get: (keys) => ask(keys.map((key) => ({ last_by_subj: `${front}${key}` }))),
    at: (seqs) => ask(seqs.map((seq) => ({ seq }))),
    async keys(below, offset) {
      await ensure();
      const found = await wire.ask<NonNullable<Awaited<ReturnType<BusStreams['info']>>>>(
        `STREAM.INFO.${stream}`,
        { subjects_filter: `${front}${below}>`, offset },
      );
      const subjects = Object.keys(found.state.subjects ?? {});
      return subjects.length === 0 ? undefined : subjects.map((each) => each.slice(front.length));
    },
    async erase(seqs) {
      if (seqs.length === 0) return;
      const verb = `STREAM.MSG.DELETE.${stream}`;
      const answers = await wire.askAll<{ readonly error?: ApiError }>(
        seqs.map((seq) => ({ verb, body: { seq, no_erase: true } })),
      );
      for (const { error } of answers) {
        if (error !== undefined && !goneCodes.has(error.err_code ?? 0)) throw refusalOf(error);
      }
    },
  };
}

const goneCodes: ReadonlySet<number> = new Set([
  refusals.sequenceNotFound,
  refusals.messageNotFound,
  refusals.deleteFailed,
  refusals.streamNotFound,
]);

/** A bucket as NATS's own tools know it, but that single messages may be deleted. */
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
    // Full: who writes is told.
    discard: 'new',
    num_replicas: replicas,
    duplicate_window: windowNs,
    allow_rollup_hdrs: true,
    allow_direct: false,
  };
}

function chunksOf(writes: readonly BucketWrite[]): readonly (readonly BucketWrite[])[] {
  const chunks: BucketWrite[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const write of writes) {
    const count = chunks.at(-1)?.length ?? 0;
    if (bytes + write.data.length > bytesAtOnce || count >= writesAtOnce) {
      chunks.push([]);
      bytes = 0;
    }
    chunks.at(-1)?.push(write);
    bytes += write.data.length;
  }
  return chunks;
}

/** The wire speaks of a bus; tasks have their own codes. */
export async function asTasks<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    if (error.code === 'BUS_CLOSED') {
      throw new MillraceError('TASKS_CLOSED', 'the tasks were closed', { cause: error });
    }
    if (error.code !== 'BUS_UNAVAILABLE') throw error;
    throw new MillraceError('TASKS_UNAVAILABLE', error.message, {
      cause: error,
      retryable: error.retryable,
      details: error.details,
    });
  }
}
