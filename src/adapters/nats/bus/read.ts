// Reading past all groups: a consumer of the server's memory that is made again wherever it got lost, from
// behind the last message that was seen.

import type { StartFrom } from '../../../bus/bus.ts';
import type { ReadRequest, StoredEntry } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { backoffMs } from '../../../foundation/backoff.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { ConsumerInfo } from './consumers.ts';
import type { BusParts, BusStreams } from './streams.ts';
import { toDelivered, type DeliveredMessage } from '../connection/delivered-message.ts';
import { createPuller, type Puller } from '../connection/jetstream-puller.ts';
import { busUnavailable } from '../connection/jetstream-wire.ts';

export interface BusReader {
  read(pattern: string, request: ReadRequest): Promise<AsyncIterable<readonly StoredEntry[]>>;
  /** What one subject holds now, without the bytes, oldest first, until the caller has enough. */
  headers(subject: string, fromSequence?: number): AsyncIterable<DeliveredMessage>;
  /** How many it holds from this sequence on. */
  countFrom(subject: string, sequence: number): Promise<number>;
}

interface ReadOrder extends ReadRequest {
  readonly headersOnly?: boolean;
}

const waitMs = 30_000;
/** The server drops a reader that nobody has asked for so long. */
const inactiveMs = 120_000;
const msToNs = 1_000_000;
const headersMax = 1_000;
const backoff = {
  initialMs: busLimits.retryMsFirst,
  factor: 2,
  capMs: busLimits.retryMsMax,
  jitterMs: busLimits.retryMsFirst,
  attemptsMax: Number.MAX_SAFE_INTEGER,
};

export function createBusReader({ wire, layout }: BusParts, streams: BusStreams): BusReader {
  async function open(
    pattern: string,
    order: ReadOrder,
  ): Promise<AsyncIterable<readonly DeliveredMessage[]>> {
    const { isLive, signal, batchMax } = order;
    const stream = layout.streamOf(pattern);
    await streams.ensure(pattern);
    const before = await streams.info(stream);
    const end = before?.state.last_seq ?? 0;
    let created = before?.created;
    let reader = await create(pattern, policyOf(order.from), order);
    let puller = pullerOf(reader);
    let next = reader.delivered.stream_seq + 1;
    let handedOut = 0;
    let isLost = false;
    const take = { batch: batchMax, waitMs: isLive ? waitMs : 0, signal };

    async function begin(): Promise<void> {
      streams.forget();
      await streams.ensure(pattern);
      const now = (await streams.info(stream))?.created;
      // Of another stream nothing was seen.
      if (now !== created) next = 1;
      created = now;
      reader = await create(pattern, from(next), order);
      puller = pullerOf(reader);
      handedOut = 0;
      isLost = false;
    }

    async function* batches(): AsyncIterable<readonly DeliveredMessage[]> {
      let failures = 0;
      try {
        for (;;) {
          try {
            // The server tells who asks a reader that it does not have nothing at all.
            if (isLost) await begin();
            const pulled = await puller.take(take);
            if (pulled === undefined) throw busUnavailable('the reader is gone');
            failures = 0;
            const arrived = pulled.map(({ message }) => toDelivered(message, layout));
            const batch = arrived.filter(
              (each, at) => each.consumerSequence === handedOut + at + 1,
            );
            handedOut += batch.length;
            const fits = isLive ? batch : batch.filter(({ sequence }) => sequence <= end);
            const last = batch.at(-1);
            if (last !== undefined) next = last.sequence + 1;
            if (fits.length > 0) yield fits;
            // What a connection that broke took along is read again.
            if (batch.length < arrived.length)
              throw busUnavailable('messages were lost on their way');
            if (!isLive && (last === undefined || last.pending === 0 || next > end)) return;
          } catch (error) {
            failures += 1;
            if (!hasCode(error, 'BUS_UNAVAILABLE') || !error.retryable) throw error;
            if (!isLive && failures > 1) throw error;
            isLost = true;
            if (failures > 1) await systemClock.sleep(backoffMs(backoff, failures - 1), signal);
          }
        }
      } finally {
        // Whatever becomes of it: the server drops it later by itself.
        wire.ask(`CONSUMER.DELETE.${stream}.${reader.name}`).catch(() => undefined);
        await puller.close();
      }
    }

    return batches();
  }

  /** What comes when nobody waits is not lost: the next reader begins behind what was seen. */
  function pullerOf({ stream_name: stream, name: consumer }: ConsumerInfo): Puller {
    return createPuller(wire, { from: { stream, consumer } }, () => undefined);
  }

  async function create(
    pattern: string,
    policy: object,
    { headersOnly = false }: Pick<ReadOrder, 'headersOnly'>,
  ): Promise<ConsumerInfo> {
    const stream = layout.streamOf(pattern);
    return wire.ask<ConsumerInfo>(`CONSUMER.CREATE.${stream}`, {
      stream_name: stream,
      config: {
        filter_subject: layout.toNats(pattern),
        ack_policy: 'none',
        replay_policy: 'instant',
        inactive_threshold: inactiveMs * msToNs,
        mem_storage: true,
        num_replicas: 1,
        headers_only: headersOnly,
        ...policy,
      },
    });
  }

  return {
    async read(pattern, request) {
      const opened = await open(pattern, request);
      return (async function* () {
        for await (const batch of opened) yield batch.map(({ entry }) => entry);
      })();
    },
    async *headers(subject, fromSequence = 1) {
      const order = { isLive: false, headersOnly: true, batchMax: headersMax };
      const start = { sequence: String(fromSequence) };
      const { signal } = new AbortController();
      const opened = await open(subject, { ...order, from: start, signal });
      for await (const batch of opened) yield* batch;
    },
    async countFrom(subject, sequence) {
      const counter = await create(subject, from(sequence), {});
      await wire.ask(`CONSUMER.DELETE.${counter.stream_name}.${counter.name}`);
      return counter.num_pending;
    },
  };
}

function from(sequence: number): object {
  return { deliver_policy: 'by_start_sequence', opt_start_seq: Math.max(1, sequence) };
}

function policyOf(start: StartFrom): object {
  if (start === 'start') return { deliver_policy: 'all' };
  if (start === 'now') return { deliver_policy: 'new' };
  if ('time' in start) {
    return { deliver_policy: 'by_start_time', opt_start_time: start.time.toISOString() };
  }
  return from('sequence' in start ? Number(start.sequence) : Number(start.position) + 1);
}
