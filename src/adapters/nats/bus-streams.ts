// The two streams of the bus in JetStream: made when they are first needed, widened when a new root
// appears, and made again when the server lost them.

import { MillraceError } from '../../foundation/error.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { BusLayout } from './bus-layout.ts';
import { isRefused, refusals, type JetStreamWire } from './jetstream-wire.ts';

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
const roundsMax = 20;

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

  function covers(config: StreamConfig, subjects: readonly string[], windowNs: number): boolean {
    return (
      config.duplicate_window >= windowNs &&
      subjects.every((each) => config.subjects.includes(each))
    );
  }

  return {
    info,
    forget: () => known.clear(),
    async ensure(pattern, dedupeWindowMs = 0) {
      const stream = layout.streamOf(pattern);
      const subjects = layout.coverOf(pattern);
      const windowNs = dedupeWindowMs === 0 ? 0 : Math.max(windowMsMin, dedupeWindowMs) * msToNs;
      const before = known.get(stream);
      if (before !== undefined && covers(before, subjects, windowNs)) return;
      // Whoever widens it at the same time may undo this: only what the server then shows counts.
      for (let round = 0; round < roundsMax; round += 1) {
        const found = await info(stream);
        if (found !== undefined && covers(found.config, subjects, windowNs)) {
          known.set(stream, found.config);
          made.add(stream);
          return;
        }
        if (found === undefined && made.has(stream)) {
          observer.log?.warn({ stream }, 'bus stream was gone and is made anew');
        }
        const config = found?.config ?? newStream(stream, replicas);
        await write(
          stream,
          {
            ...config,
            subjects: [...new Set([...config.subjects, ...subjects])],
            duplicate_window: Math.max(config.duplicate_window, windowNs),
          },
          found !== undefined,
        );
      }
      throw new MillraceError(
        'BUS_UNAVAILABLE',
        `the stream '${stream}' does not keep its subjects`,
      );
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
