// Reads messages independent of groups, with a consumer in the server's memory. A lost consumer is created again after
// the last message that was read.

import type { StartFrom } from '../../../bus/bus.ts';
import type { ReadRequest, StoredEntry } from '../../../bus/bus-engine.ts';
import { busLimits } from '../../../bus/bus-limits.ts';
import { backoffMs } from '../../../foundation/backoff.ts';
import { systemClock } from '../../../foundation/clock.ts';
import { hasCode } from '../../../foundation/error.ts';
import type { BusParts, BusStreams } from './streams.ts';
import { natsUnavailable } from '../connection/connection.ts';
import { toDelivered, type DeliveredMessage } from '../connection/delivered-message.ts';
import { createPuller, type Puller } from '../connection/jetstream-puller.ts';
import type { ConsumerInfo } from '../connection/jetstream-wire.ts';

export interface BusReader {
  read(pattern: string, request: ReadRequest): Promise<AsyncIterable<readonly StoredEntry[]>>;
  /** The stored messages of one subject without their data, oldest first. */
  headers(subject: string, fromSequence?: number): AsyncIterable<DeliveredMessage>;
  /** The number of stored messages from this sequence on. */
  countFrom(subject: string, sequence: number): Promise<number>;
  /** The lowest sequence that is not older than this time. */
  firstSince(pattern: string, time: Date): Promise<string>;
}

interface ReaderRequest extends ReadRequest {
  readonly headersOnly?: boolean;
}

const waitMs = 30_000;
/** The server deletes a reader that is inactive for this long. */
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
    request: ReaderRequest,
  ): Promise<AsyncIterable<readonly DeliveredMessage[]>> {
    const { isLive, signal, batchMax } = request;
    const stream = layout.streamOf(pattern);
    await streams.ensure(pattern);
    const before = await streams.info(stream);
    const end = before?.state.last_seq ?? 0;
    let created = before?.created;
    let reader = await create(pattern, startPolicy(request.from), request);
    let puller = pullerOf(reader);
    let next = reader.delivered.stream_seq + 1;
    let delivered = 0;
    let isLost = false;
    const take = { batch: batchMax, waitMs: isLive ? waitMs : 0, signal };

    async function recreate(): Promise<void> {
      streams.forget();
      await streams.ensure(pattern);
      const now = (await streams.info(stream))?.created;
      // A recreated stream is read from its start.
      if (now !== created) next = 1;
      created = now;
      reader = await create(pattern, from(next), request);
      puller = pullerOf(reader);
      delivered = 0;
      isLost = false;
    }

    async function* batches(): AsyncIterable<readonly DeliveredMessage[]> {
      let failures = 0;
      try {
        for (;;) {
          try {
            // The server does not reply to a pull from a reader that it lost.
            if (isLost) await recreate();
            const pulled = await puller.take(take);
            if (pulled === undefined) throw natsUnavailable('the reader was deleted');
            failures = 0;
            const arrived = pulled.map(({ message }) => toDelivered(message, layout));
            const batch = arrived.filter(
              (each, at) => each.consumerSequence === delivered + at + 1,
            );
            delivered += batch.length;
            const fits = isLive ? batch : batch.filter(({ sequence }) => sequence <= end);
            const last = batch.at(-1);
            if (last !== undefined) next = last.sequence + 1;
            if (fits.length > 0) yield fits;
            // Messages in flight when the connection was lost are read again.
            if (batch.length < arrived.length)
              throw natsUnavailable('messages in flight were lost');
            if (!isLive && (last === undefined || last.pending === 0 || next > end)) return;
          } catch (error) {
            failures += 1;
            if (!hasCode(error, 'STORE_UNAVAILABLE') || !error.retryable) throw error;
            if (!isLive && failures > 1) throw error;
            isLost = true;
            if (failures > 1) await systemClock.sleep(backoffMs(backoff, failures - 1), signal);
          }
        }
      } finally {
        // If the deletion fails, the server deletes the inactive reader later.
        wire.request(`CONSUMER.DELETE.${stream}.${reader.name}`).catch(() => undefined);
        await puller.close();
      }
    }

    return batches();
  }

  /** Messages without a waiting caller are dropped: the next reader starts after the last one that was read. */
  function pullerOf({ stream_name: stream, name: consumer }: ConsumerInfo): Puller {
    return createPuller(wire, { from: { stream, consumer } }, () => undefined);
  }

  async function create(
    pattern: string,
    policy: object,
    { headersOnly = false }: Pick<ReaderRequest, 'headersOnly'>,
  ): Promise<ConsumerInfo> {
    const stream = layout.streamOf(pattern);
    return wire.request<ConsumerInfo>(`CONSUMER.CREATE.${stream}`, {
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

  /** Creates a consumer, returns the state that the server reports, and deletes the consumer at once. */
  async function probe(pattern: string, policy: object): Promise<ConsumerInfo> {
    const consumer = await create(pattern, policy, {});
    await wire.request(`CONSUMER.DELETE.${consumer.stream_name}.${consumer.name}`);
    return consumer;
  }

  return {
    async read(pattern, request) {
      const opened = await open(pattern, request);
      return (async function* () {
        for await (const batch of opened) yield batch.map(({ entry }) => entry);
      })();
    },
    async *headers(subject, fromSequence = 1) {
      const options = { isLive: false, headersOnly: true, batchMax: headersMax };
      const start = { sequence: String(fromSequence) };
      const { signal } = new AbortController();
      const opened = await open(subject, { ...options, from: start, signal });
      for await (const batch of opened) yield* batch;
    },
    async countFrom(subject, sequence) {
      return (await probe(subject, from(sequence))).num_pending;
    },
    async firstSince(pattern, time) {
      return String((await probe(pattern, startPolicy({ time }))).delivered.stream_seq + 1);
    },
  };
}

function from(sequence: number): object {
  return { deliver_policy: 'by_start_sequence', opt_start_seq: Math.max(1, sequence) };
}

/** Where a consumer starts to read. */
export function startPolicy(start: StartFrom): object {
  if (start === 'start') return { deliver_policy: 'all' };
  if (start === 'end') return { deliver_policy: 'new' };
  if ('time' in start) {
    return { deliver_policy: 'by_start_time', opt_start_time: start.time.toISOString() };
  }
  return from('sequence' in start ? Number(start.sequence) : Number(start.position) + 1);
}
