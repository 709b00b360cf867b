// The two streams of the bus in JetStream: created on first use, extended for a new root, and created again when the
// server has lost them.

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { BusLayout } from './layout.ts';
import { natsUnavailable } from '../connection/connection.ts';
import {
  isApiError,
  apiErrorCodes,
  unlessMissing,
  type JetStreamWire,
} from '../connection/jetstream-wire.ts';

interface StreamConfig {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly duplicate_window: number;
}

export interface StreamState {
  readonly config: StreamConfig;
  /** The creation time; it changes if the stream is deleted and created again. */
  readonly created: string;
  readonly state: {
    readonly first_seq: number;
    readonly last_seq: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
  /** The number of subjects over all pages. */
  readonly total?: number;
}

export interface BusStreams {
  /** Creates or extends the stream of this subject or pattern. */
  ensure(pattern: string, dedupeWindowMs?: number): Promise<void>;
  /** Drops the cached configuration, after the server has lost a stream. */
  forget(): void;
  /** Undefined: the stream does not exist. */
  info(stream: string, body?: object): Promise<StreamState | undefined>;
}

/** The shortest dedupe window; some servers reject less. */
const windowMsMin = 100;
const msToNs = 1_000_000;
/** The age after which a lock is broken: a live process releases it earlier. */
const lockMsMax = 5_000;
/** A server may report an overlap while another process creates the same lock, but not this many times in a row. */
const overlapsMax = 20;

export function createBusStreams(
  { wire, layout, observer }: BusParts,
  { replicas }: { readonly replicas: number },
): BusStreams {
  /** Stream → its cached configuration. */
  const known = new Map<string, StreamConfig>();
  const seen = new Set<string>();

  async function info(stream: string, body: object = {}): Promise<StreamState | undefined> {
    return unlessMissing(() => wire.request<StreamState>(`STREAM.INFO.${stream}`, body));
  }

  async function write(stream: string, wanted: StreamConfig, exists: boolean): Promise<void> {
    const verb = exists ? `STREAM.UPDATE.${stream}` : `STREAM.CREATE.${stream}`;
    try {
      await wire.request(verb, wanted);
    } catch (error) {
      if (isApiError(error, apiErrorCodes.subjectsOverlap)) throw overlap(wanted.subjects, error);
      throw error;
    }
  }

  function covers(config: StreamConfig, subject: string, windowNs: number): boolean {
    return config.duplicate_window >= windowNs && config.subjects.includes(subject);
  }

  async function isReady(stream: string, subject: string, windowNs: number): Promise<boolean> {
    const found = await info(stream);
    if (found === undefined || !covers(found.config, subject, windowNs)) return false;
    known.set(stream, found.config);
    seen.add(stream);
    return true;
  }

  /**
   * Runs `work` under a lock. Without it, two processes that extend a stream at once would undo each other's change, and
   * the server might ignore a subject that it lists. The lock is a stream with a unique description, which only one of
   * several processes can create.
   */
  async function withLock(stream: string, work: () => Promise<void>): Promise<void> {
    const lock = `${stream}-widening`;
    let overlaps = 0;
    for (let beganMs = performance.now(); ;) {
      const failure = await tryLock(lock);
      if (failure === undefined) break;
      overlaps = isApiError(failure, apiErrorCodes.subjectsOverlap) ? overlaps + 1 : 0;
      if (overlaps === overlapsMax) throw overlap([lock], failure);
      await systemClock.sleep(5 + Math.random() * 20);
      if (performance.now() - beganMs < lockMsMax) continue;
      // The process that held the lock has died.
      await unlock(lock);
      beganMs = performance.now();
    }
    try {
      await work();
    } finally {
      await unlock(lock);
    }
  }

  /** Resolves to undefined, or to the server's reason why the lock could not be created. */
  async function tryLock(lock: string): Promise<unknown> {
    const unique = { description: randomUUID(), subjects: [lock], storage: 'memory' };
    try {
      await wire.request(`STREAM.CREATE.${lock}`, { name: lock, retention: 'limits', ...unique });
      return undefined;
    } catch (error) {
      const { streamNameInUse, subjectsOverlap } = apiErrorCodes;
      if (isApiError(error, streamNameInUse) || isApiError(error, subjectsOverlap)) return error;
      throw error;
    }
  }

  async function unlock(lock: string): Promise<void> {
    await unlessMissing(() => wire.request(`STREAM.DELETE.${lock}`));
  }

  return {
    info,
    forget: () => known.clear(),
    async ensure(pattern, dedupeWindowMs = 0) {
      const stream = layout.streamOf(pattern);
      const subject = layout.coverOf(pattern);
      const windowNs = dedupeWindowMs === 0 ? 0 : Math.max(windowMsMin, dedupeWindowMs) * msToNs;
      const cached = known.get(stream);
      if (cached !== undefined && covers(cached, subject, windowNs)) return;
      if (await isReady(stream, subject, windowNs)) return;
      await withLock(stream, async () => {
        if (await isReady(stream, subject, windowNs)) return;
        const found = await info(stream);
        if (found === undefined && seen.has(stream)) {
          observer.log?.warn({ stream }, 'bus stream was missing and is created again');
        }
        const config = found?.config ?? newStream(stream, replicas);
        const wanted = {
          ...config,
          subjects: [...new Set([...config.subjects, subject])],
          duplicate_window: Math.max(config.duplicate_window, windowNs),
        };
        await write(stream, wanted, found !== undefined);
        if (await isReady(stream, subject, windowNs)) return;
        throw natsUnavailable(`the stream '${stream}' lost its subjects`);
      });
    },
  };
}

export interface BusParts {
  readonly wire: JetStreamWire;
  readonly layout: BusLayout;
  readonly observer: Observer;
}

function overlap(subjects: readonly string[], cause: unknown): MillraceError {
  return new MillraceError(
    'BUS_INVALID',
    `another NATS stream has some of the subjects ${subjects.join(', ')}: give the bus a prefix, or delete that stream`,
    { cause, details: { field: 'subject' } },
  );
}

function newStream(name: string, replicas: number): StreamConfig & Record<string, unknown> {
  return {
    name,
    subjects: [],
    retention: 'limits',
    storage: 'file',
    // A full stream rejects new messages instead of dropping unread ones.
    discard: 'new',
    num_replicas: replicas,
    duplicate_window: windowMsMin * msToNs,
  };
}
