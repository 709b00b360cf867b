// The bus on top of an engine: validation, envelopes, groups, consumers, requests and dead letters.

import { validatePattern, validateSubject } from '../contracts/subject-match.ts';
import { systemClock, type Clock } from '../foundation/clock.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { silentObserver, type Observer } from '../foundation/observer.ts';
import { safeObserver } from '../foundation/safe-observer.ts';
import { subjectHeader } from '../store/erasure.ts';
import type { PersonalData } from '../store/personal-data.ts';
import type { Bus, BusGroup, GroupDefinition, ReadOptions } from './bus.ts';
import type { BusEngine, EngineEntry, ReadRequest, StoredEntry } from './bus-engine.ts';
import { busLimits as limits } from './bus-limits.ts';
import type { BusMessage, Published } from './bus-message.ts';
import {
  checkGroupName,
  checkStart,
  checkTrim,
  invalid,
  toPage,
  checkInteger,
} from './check-bus.ts';
import { unknownGroup } from './group-errors.ts';
import { createDeadLetters } from './dead-letter.ts';
import {
  createGroupMember,
  maxDeliveriesOf,
  toGroupSettings,
  type GroupMember,
  type MemberContext,
} from './group-member.ts';
import { createMessageCodec, type PayloadSchemas } from './message-codec.ts';
import { personalBusEngine } from './personal-messages.ts';
import { createRequests } from './request-reply.ts';
import { startConsumer } from './start-consumer.ts';

export interface BusOptions {
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
  /** How long a message id is remembered to detect duplicates. Default: 2 min. */
  readonly dedupeWindowMs?: number | undefined;
  /** Subject or pattern → the schema of its payloads, checked on publish and on delivery. */
  readonly payloads?: PayloadSchemas | undefined;
  /** Encrypts messages with the header `dataSubject`: `personalData` of an event store. */
  readonly personalData?: PersonalData | undefined;
}

const readBatchMax = 500;

/**
 * Creates a bus on top of an engine. The engines of Millrace use it; call it for your own engine.
 *
 * @example
 * import { createBus, type Bus, type BusEngine } from 'millrace/bus';
 *
 * const createMyBus = (engine: BusEngine): Bus => createBus(engine, { dedupeWindowMs: 60_000 });
 */
export function createBus(stored: BusEngine, options: BusOptions = {}): Bus {
  const engine = personalBusEngine(stored, options.personalData);
  const { clock = systemClock } = options;
  const { capabilities } = engine;
  const observer = safeObserver(options.observer ?? silentObserver);
  const dedupeWindowMs = checkInteger(
    'dedupeWindowMs',
    options.dedupeWindowMs ?? limits.dedupeWindowMsDefault,
    { min: 1, max: limits.dedupeWindowMsMax },
  );
  const codec = createMessageCodec({ clock, payloads: options.payloads });
  const closing = new AbortController();
  const consumers = new Set<AsyncDisposable>();
  const deadLetters = createDeadLetters(engine, { dedupeWindowMs });
  const requests = createRequests({
    engine,
    codec,
    clock,
    observer,
    publish: async (message, request) => {
      const [published] = await store([codec.encode(message, request)]);
      return published as Published;
    },
  });
  const context: MemberContext = {
    engine,
    codec,
    clock,
    observer,
    async reply({ id, replyTo, headers, correlationId, tenant, trace }, payload) {
      if (replyTo === undefined) {
        throw invalid('replyTo', 'is missing: this message is not a request');
      }
      await bus.publish({
        // Every delivery of the request yields this reply id, so that only one reply is stored.
        id: `reply:${id}`,
        subject: replyTo,
        payload,
        causationId: id,
        correlationId,
        tenant,
        trace,
        // The reply to a request about a person is about this person.
        headers: subjectIn(headers),
      });
    },
  };

  async function store(entries: readonly EngineEntry[]): Promise<readonly Published[]> {
    failIfClosed();
    const appended = await engine.append(entries, { dedupeWindowMs });
    const duplicates = appended.filter(({ isDuplicate }) => isDuplicate).length;
    observer.count?.('bus_published_total', {}, entries.length - duplicates);
    if (duplicates > 0) observer.count?.('bus_duplicates_total', {}, duplicates);
    return entries.map(({ id, subject }, at) => {
      const { sequence = '', isDuplicate = false } = appended[at] ?? {};
      return { id, subject, sequence, isDuplicate };
    });
  }

  function failIfClosed(): void {
    if (closing.signal.aborted) throw new MillraceError('BUS_CLOSED', 'the bus was closed');
  }

  async function joinGroup(definition: GroupDefinition): Promise<GroupMember> {
    failIfClosed();
    const settings = toGroupSettings(definition, capabilities);
    const member = createGroupMember(context, settings, maxDeliveriesOf(definition));
    await member.ensure();
    return member;
  }

  function signalOf(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
  }

  /** Resolves when the start position is fixed. */
  async function open(
    pattern: string,
    request: Omit<ReadRequest, 'batchMax'>,
    from: BusEngine = engine,
  ): Promise<AsyncIterable<readonly StoredEntry[]>> {
    failIfClosed();
    validatePattern(pattern);
    checkStart('from', request.from, { subject: pattern, capabilities });
    return from.read(pattern, { ...request, batchMax: readBatchMax });
  }

  async function* existing(
    pattern: string,
    { from = 'start', signal }: ReadOptions,
    reader: BusEngine,
  ) {
    const request = { from, isLive: false, signal: signalOf(signal) };
    for await (const batch of await open(pattern, request, reader)) yield* batch;
  }

  function decode(entry: StoredEntry): BusMessage | undefined {
    const result = codec.decode(entry);
    if (result.kind === 'message') return result.message;
    const { subject, sequence } = entry;
    observer.count?.('bus_malformed_skipped_total', {});
    observer.log?.warn({ subject, sequence, reason: result.reason }, 'malformed message skipped');
    return undefined;
  }

  const bus: Bus = {
    capabilities,
    async publish(message) {
      const [published] = await bus.publishMany([message]);
      return published as Published;
    },
    async publishMany(messages) {
      checkInteger('messages', messages.length, { min: 0, max: limits.publishMax });
      failIfClosed();
      if (messages.length === 0) return [];
      return store(messages.map((each) => codec.encode(each)));
    },

    async group(definition): Promise<BusGroup> {
      const member = await joinGroup(definition);
      return {
        name: member.settings.name,
        subject: definition.subject,
        async fetch({ limit = 1, waitMs = limits.fetchWaitMsDefault, signal } = {}) {
          failIfClosed();
          checkInteger('limit', limit, { min: 1, max: limits.fetchMax });
          checkInteger('waitMs', waitMs, { min: 0, max: limits.requestTimeoutMsMax });
          const deliveries = await member.fetch({ limit, waitMs, signal: signalOf(signal) });
          return deliveries.map(({ delivery }) => delivery);
        },
        async ack(deliveries) {
          await Promise.all(deliveries.map((each) => each.ack()));
        },
      };
    },
    async consume(definition, handler, consumeOptions = {}) {
      const member = await joinGroup(definition);
      const consumer = startConsumer(context, member, handler, consumeOptions);
      consumers.add(consumer);
      const forget = (): void => void consumers.delete(consumer);
      consumer.done.then(forget, forget);
      return consumer;
    },

    async subscribe(pattern, { from = 'end', signal } = {}) {
      const ending = new AbortController();
      const either = AbortSignal.any([ending.signal, signalOf(signal)]);
      const batches = await open(pattern, { from, isLive: true, signal: either });
      const decodedBatches = async function* (): AsyncGenerator<readonly BusMessage[]> {
        try {
          for await (const batch of batches) {
            const messages = batch.flatMap((entry) => decode(entry) ?? []);
            if (either.aborted) return;
            if (messages.length > 0) yield messages;
          }
        } catch (error) {
          // The caller ended the subscription.
          if (!hasCode(error, 'ABORTED')) throw error;
        }
      };
      return {
        batches: decodedBatches,
        async *[Symbol.asyncIterator]() {
          for await (const batch of decodedBatches()) {
            for (const message of batch) {
              if (either.aborted) return;
              yield message;
            }
          }
        },
        async [Symbol.asyncDispose]() {
          ending.abort();
        },
      };
    },
    async *read(pattern, readOptions = {}) {
      for await (const entry of existing(pattern, readOptions, engine)) {
        const message = decode(entry);
        if (message !== undefined) yield message;
      }
    },
    async *readStored(pattern, readOptions = {}) {
      // An archive contains encrypted payloads.
      for await (const entry of existing(pattern, readOptions, stored)) {
        const { subject, sequence, storedAtMs, data } = entry;
        yield { subject, sequence, storedAt: new Date(storedAtMs), data };
      }
    },

    async request(message, requestOptions = {}) {
      failIfClosed();
      return requests.request(message, {
        ...requestOptions,
        signal: signalOf(requestOptions.signal),
      });
    },

    async stream(subject) {
      validateSubject(subject);
      const [info] = await engine.streams(subject, { after: undefined, limit: 1 });
      return info;
    },
    async streams(pattern, page = {}) {
      validatePattern(pattern);
      return engine.streams(pattern, toPage(page));
    },
    async trim(subject, order) {
      validateSubject(subject);
      checkTrim(order, capabilities);
      return engine.trim(subject, order);
    },
    async deleteStream(subject, { evenUnacked = false } = {}) {
      validateSubject(subject);
      if (!evenUnacked) {
        const info = await bus.stream(subject);
        const lagging = info?.groups.filter(({ lag, pending }) => lag + pending > 0) ?? [];
        if (lagging.length > 0)
          throw streamHeld(
            subject,
            lagging.map(({ name }) => name),
          );
      }
      return engine.deleteStream(subject);
    },

    groups: () => engine.groups(),
    async pending(group, limit = limits.pageDefault) {
      checkGroupName(group);
      checkInteger('limit', limit, { min: 1, max: limits.pageMax });
      if (!capabilities.pendingList) {
        const text = 'this engine cannot list pending messages: groups() returns their number';
        throw new MillraceError('NOT_SUPPORTED', text);
      }
      return engine.pending(group, limit);
    },
    async seek(group, to) {
      checkGroupName(group);
      const info = (await engine.groups()).find(({ name }) => name === group);
      if (info === undefined) throw unknownGroup(group);
      checkStart('to', to, { subject: info.subject, capabilities });
      await engine.seek(group, to);
    },
    async deleteGroup(group) {
      checkGroupName(group);
      return engine.deleteGroup(group);
    },

    ...deadLetters,

    async [Symbol.asyncDispose]() {
      if (closing.signal.aborted) return;
      // Consumers and requests still need the engine to settle and clean up.
      await Promise.all([...consumers].map((each) => each[Symbol.asyncDispose]()));
      try {
        await requests[Symbol.asyncDispose]();
      } catch (err) {
        observer.log?.warn({ err }, 'reply stream was not deleted');
      }
      closing.abort();
      await engine[Symbol.asyncDispose]();
    },
  };
  return bus;
}

function subjectIn(headers: BusMessage['headers']): BusMessage['headers'] | undefined {
  const subject = headers[subjectHeader];
  return subject === undefined ? undefined : { [subjectHeader]: subject };
}

function streamHeld(subject: string, groups: readonly string[]): MillraceError {
  return new MillraceError(
    'BUS_STREAM_HELD',
    `cannot delete stream '${subject}': groups have not acked all messages: ${groups.join(', ')}`,
    { details: { subject, groups } },
  );
}
