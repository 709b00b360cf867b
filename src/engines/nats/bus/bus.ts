// The bus on NATS JetStream, 2.9 or newer.

import type { NatsConnection as Driver } from '@nats-io/transport-node';
import type { Bus, BusCapabilities } from '../../../bus/bus.ts';
import type { BusEngine } from '../../../bus/bus-engine.ts';
import { createBus, type BusOptions } from '../../../bus/create-bus.ts';
import { silentObserver } from '../../../foundation/observer.ts';
import { createAppend } from './append.ts';
import { createBusConsumers } from './consumers.ts';
import { createBusLeases } from './fetch.ts';
import { busStreamOf, checkNames, createBusLayout } from './layout.ts';
import { createBusReader } from './read.ts';
import { createBusStreams } from './streams.ts';
import { createBusUpkeep } from './upkeep.ts';
import { openJetStreamWire } from '../connection/jetstream-wire.ts';
import type { NatsConnectionOptions } from '../connection/connection.ts';

export interface NatsBusOptions extends BusOptions, Pick<NatsConnectionOptions, 'timeoutMs'> {
  /** Prefix of every subject, for a second bus on one NATS: `shop` stores `shop.gbe.tasks.…`. */
  readonly prefix?: string | undefined;
  /** The name of the stream; the second stream is `<name>-system`. Default: `millrace-bus`, or `<prefix>-bus`. */
  readonly stream?: string | undefined;
  /**
   * First tokens of subjects that exist from the start, such as `gbe`, for producers that publish to NATS directly.
   * The bus adds others when it first sees them.
   */
  readonly roots?: readonly string[] | undefined;
  /** Replicas of the streams that are created. Default: 1. */
  readonly replicas?: number | undefined;
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

/**
 * A bus on NATS JetStream, by URL or with your connection, which you close.
 *
 * @example
 * import { natsBus } from 'millrace/adapters/nats';
 *
 * await using bus = await natsBus('nats://localhost:4222');
 * await bus.publish({ subject: 'gbe.events.system.health', payload: { ok: true } });
 */
export async function natsBus(target: string | Driver, options: NatsBusOptions = {}): Promise<Bus> {
  const { observer = silentObserver, prefix, replicas = 1, timeoutMs } = options;
  const { stream = busStreamOf(prefix) } = options;
  checkNames('bus', { prefix, stream });
  const wire = await openJetStreamWire(target, { observer, timeoutMs });
  const parts = { wire, layout: createBusLayout({ stream, prefix }), observer };
  const streams = createBusStreams(parts, { replicas });
  try {
    for (const root of options.roots ?? []) await streams.ensure(`${root}.>`);
  } catch (error) {
    await wire[Symbol.asyncDispose]();
    throw error;
  }
  const append = createAppend(parts, streams);
  const reader = createBusReader(parts, streams);
  const consumers = createBusConsumers(parts, streams, reader);
  const upkeep = createBusUpkeep(parts, { streams, consumers, reader });
  const engine: BusEngine = {
    capabilities: natsBusCapabilities,
    append,
    ensureGroup: (settings) => consumers.ensure(settings),
    ...createBusLeases(parts, consumers, append),
    read: (pattern, request) => reader.read(pattern, request),
    ...upkeep,
    groups: () => consumers.groups(),
    // Never called: the capability `pendingList` is false.
    pending: async () => [],
    seek: (group, to) => consumers.seek(group, to),
    deleteGroup: (group) => consumers.remove(group),
    [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose](),
  };
  return createBus(engine, options);
}
