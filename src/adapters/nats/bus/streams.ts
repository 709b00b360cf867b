// The two streams of the bus in JetStream: made when they are first needed, widened when a new root
// appears, and made again when the server lost them.

import { randomUUID } from 'node:crypto';
import { systemClock } from '../../../foundation/clock.ts';
import { MillraceError } from '../../../foundation/error.ts';
import type { Observer } from '../../../foundation/observer.ts';
import type { BusLayout } from './layout.ts';
import { busUnavailable, isRefused, refusals, type JetStreamWire } from '../connection/jetstream-wire.ts';

interface StreamConfig {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly duplicate_window: number;
}

interface StreamState {
  readonly config: StreamConfig;
  /** When; another time is another stream. */
  readonly created: string;
  readonly state: {
    readonly first_seq: number;
    readonly last_seq: number;
    readonly subjects?: Readonly<Record<string, number>>;
  };
  /** Of subjects, over all pages. */
  readonly total?: number;
}

export interface BusStreams {
  /** Sees to it that the stream of this subject or pattern is there and takes it. */
  ensure(pattern: string, dedupeWindowMs?: number): Promise<void>;
  /** The server does not know what was there: look again. */
  forget(): void;
  /** Undefined: the stream is not there. */
  info(stream: string, body?: object): Promise<StreamState | undefined>;
}

/** Ids are remembered so long at least; less is refused by some servers. */
const windowMsMin = 100;
const msToNs = 1_000_000;
/** Longer than anybody needs who is alive. */
const lockMsMax = 5_000;

export function createBusStreams(
  { wire, layout, observer }: BusParts,
  { replicas }: { readonly replicas: number },
): BusStreams {
  /** Stream → what it is known to cover, and its window. */
  const known = new Map<string, StreamConfig>();
  const made = new Set<string>();

  async function info(stream: string, body: object = {}): Promise<StreamState | undefined> {
    try {
      return await wire.ask<StreamState>(`STREAM.INFO.${stream}`, body);
    } catch (error) {
      if (isRefused(error, refusals.streamNotFound)) return undefined;
      throw error;
    }
  }

  async function write(stream: string, wanted: StreamConfig, there: boolean): Promise<void> {
    const verb = there ? `STREAM.UPDATE.${stream}` : `STREAM.CREATE.${stream}`;
    try {
      await wire.ask(verb, wanted);
    } catch (error) {
      if (isRefused(error, refusals.subjectsOverlap)) {
        throw new MillraceError(
          'BUS_INVALID',
          `another stream of this NATS has some of ${wanted.subjects.join(', ')}: give the bus a prefix, or let that stream go`,
          { cause: error, details: { field: 'subject' } },
        );
      }
      throw error;
    }
  }

  function covers(config: StreamConfig, subject: string, windowNs: number): boolean {
    return config.duplicate_window >= windowNs && config.subjects.includes(subject);
  }

  async function isThere(stream: string, subject: string, windowNs: number): Promise<boolean> {
    const found = await info(stream);
    if (found === undefined || !covers(found.config, subject, windowNs)) return false;
    known.set(stream, found.config);
    made.add(stream);
    return true;
  }

  /**
   * Two that widen a stream at once undo each other, and can leave the server deaf to a subject that it
   * shows. Of all that make a stream of one name, each in its own way, one succeeds.
   */
  async function alone(stream: string, work: () => Promise<void>): Promise<void> {
    const lock = `${stream}-widening`;
    for (let beganMs = performance.now(); !(await isLocked(lock));) {
      await systemClock.sleep(5 + Math.random() * 20);
      if (performance.now() - beganMs < lockMsMax) continue;
      // Whoever had it was killed.
      await unlock(lock);
      beganMs = performance.now();
    }
    try {
      await work();
    } finally {
      await unlock(lock);
    }
  }

  async function isLocked(lock: string): Promise<boolean> {
    const own = { description: randomUUID(), subjects: [lock], storage: 'memory' };
    try {
      await wire.ask(`STREAM.CREATE.${lock}`, { name: lock, retention: 'limits', ...own });
      return true;
    } catch (error) {
      if (isRefused(error, refusals.streamNameInUse)) return false;
      throw error;
    }
  }

  async function unlock(lock: string): Promise<void> {
    try {
      await wire.ask(`STREAM.DELETE.${lock}`);
    } catch (error) {
      if (!isRefused(error, refusals.streamNotFound)) throw error;
    }
  }

  return {
    info,
    forget: () => known.clear(),
    async ensure(pattern, dedupeWindowMs = 0) {
      const stream = layout.streamOf(pattern);
      const subject = layout.coverOf(pattern);
      const windowNs = dedupeWindowMs === 0 ? 0 : Math.max(windowMsMin, dedupeWindowMs) * msToNs;
      const before = known.get(stream);
      if (before !== undefined && covers(before, subject, windowNs)) return;
      if (await isThere(stream, subject, windowNs)) return;
      await alone(stream, async () => {
        if (await isThere(stream, subject, windowNs)) return;
        const found = await info(stream);
        if (found === undefined && made.has(stream)) {
          observer.log?.warn({ stream }, 'bus stream was gone and is made anew');
        }
        const config = found?.config ?? newStream(stream, replicas);
        const wanted = {
          ...config,
          subjects: [...new Set([...config.subjects, subject])],
          duplicate_window: Math.max(config.duplicate_window, windowNs),
        };
        await write(stream, wanted, found !== undefined);
        if (await isThere(stream, subject, windowNs)) return;
        throw busUnavailable(`the stream '${stream}' does not keep its subjects`);
      });
    },
  };
}

export interface BusParts {
  readonly wire: JetStreamWire;
  readonly layout: BusLayout;
  readonly observer: Observer;
}

function newStream(name: string, replicas: number): StreamConfig & Record<string, unknown> {
  return {
    name,
    subjects: [],
    retention: 'limits',
    storage: 'file',
    // Full: who publishes is told. What nobody has read yet is never dropped for it.
    discard: 'new',
    num_replicas: replicas,
    duplicate_window: windowMsMin * msToNs,
  };
}
