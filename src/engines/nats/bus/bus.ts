// The bus on NATS JetStream, 2.9 or newer.

import type { BusCapabilities } from '../../../bus/bus.ts';
import type { BusEngine, StoredEntry } from '../../../bus/bus-engine.ts';
import { aroundCalls } from '../../../foundation/async/around-calls.ts';
import { once } from '../../../foundation/async/once.ts';
import { closedError, renameError } from '../../../foundation/error.ts';
import { createAppend, type Append } from './append.ts';
import { createBusConsumers } from './consumers.ts';
import { createBusLeases } from './fetch.ts';
import { createBusReader, type BusReader } from './read.ts';
import { createBusStreams, type BusParts, type BusStreams } from './streams.ts';
import { createBusUpkeep } from './upkeep.ts';
import { withCodes } from '../connection/connection.ts';

/** The streams of the bus, for the bus and for the signals of tasks. */
export interface BusLog {
  readonly parts: BusParts;
  readonly streams: BusStreams;
  readonly append: Append;
  readonly reader: BusReader;
}

export function createBusLog(parts: BusParts, replicas: number): BusLog {
  const streams = createBusStreams(parts, { replicas });
  const reader = createBusReader(parts, streams);
  return { parts, streams, append: createAppend(parts, streams), reader };
}

/** The capabilities of JetStream from 2.9 on. */
export const natsBusCapabilities: BusCapabilities = {
  durable: true,
  crossProcess: true,
  atomicBatch: false,
  // JetStream accepts an ack of any delivery; a member whose lease has expired by its local clock sends no ack.
  fencedAcks: false,
  patternPositions: true,
  uncountedRelease: false,
  pendingList: false,
  streamBytes: false,
};

/** The first call creates the streams of the `roots`. */
export function natsBusEngine(
  { parts, streams, append, reader }: BusLog,
  roots: readonly string[] = [],
): BusEngine {
  const consumers = createBusConsumers(parts, streams, reader);
  const { fetch, settle } = createBusLeases(parts, consumers, append);
  const upkeep = createBusUpkeep(parts, { streams, consumers, reader });
  const ensureRoots = once(async () => {
    for (const root of roots) await streams.ensure(`${root}.>`);
  });
  let isClosed = false;

  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (isClosed) throw closedError('BUS');
    return withCodes('BUS', async () => {
      await ensureRoots();
      return work();
    });
  }

  return {
    capabilities: natsBusCapabilities,
    ...aroundCalls<Omit<BusEngine, 'capabilities' | typeof Symbol.asyncDispose>>(
      {
        append,
        ensureGroup: (settings) => consumers.ensure(settings),
        fetch,
        settle,
        read: async (pattern, request) => asBus(await reader.read(pattern, request)),
        ...upkeep,
        groups: () => consumers.groups(),
        // Never called: the capability `pendingList` is false.
        pending: async () => [],
        seek: (group, to) => consumers.seek(group, to),
        deleteGroup: (group) => consumers.remove(group),
      },
      call,
    ),
    async [Symbol.asyncDispose]() {
      isClosed = true;
    },
  };
}

async function* asBus(
  batches: AsyncIterable<readonly StoredEntry[]>,
): AsyncIterable<readonly StoredEntry[]> {
  try {
    yield* batches;
  } catch (error) {
    throw renameError(error, 'BUS');
  }
}
