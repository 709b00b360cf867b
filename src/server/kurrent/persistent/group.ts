// A running persistent subscription: reads the source, and performs the effects of its core.

import { hasCode } from '../../../foundation/error.ts';
import type { KurrentContext } from '../context.ts';
import type { ReadEvent } from '../events/to-wire.ts';
import { createGroupCore, type Effect, type GroupCore, type NackAction } from './group-core.ts';
import { createGroupFeed } from './group-feed.ts';
import { groupDropped, groupIsFull } from './group-errors.ts';
import type { GroupKey, GroupRecords } from './group-records.ts';
import type { GroupSettings } from './group-settings.ts';

interface ConsumerLink {
  readonly id: string;
  readonly bufferSize: number;
  readonly peer: string;
  readonly user: string;
  readonly connectionName: string;
  /** Undefined: continue. Otherwise resolves when the consumer can receive more. */
  send(message: ReadEvent, retryCount: number): Promise<void> | undefined;
  /** Ends the call of the consumer. */
  drop(reason: Error): void;
}

export interface Group {
  readonly key: GroupKey;
  readonly settings: GroupSettings;
  readonly consumers: ReadonlyMap<string, ConsumerLink>;
  connect(consumer: ConsumerLink): void;
  disconnect(id: string): void;
  ack(consumer: string, ids: readonly string[]): void;
  nack(consumer: string, ids: readonly string[], action: NackAction, reason: string): void;
  /** Delivers parked messages again, at most `stopAt`. */
  replayParked(stopAt: number): Promise<void>;
  stats(): ReturnType<GroupCore<ReadEvent>['stats']>;
  countParked(): Promise<number>;
  /** Stops the group and disconnects its consumers. */
  drop(reason: Error): Promise<void>;
}

const tickMs = 100;
const replayPage = 100;
/** Of one group, in addition to the page that reaches this size. */
const bufferBytesMax = 16 * 1_048_576;

export async function startGroup(
  context: KurrentContext,
  records: GroupRecords,
  key: GroupKey,
  settings: GroupSettings,
): Promise<Group> {
  const { clock, observer, groupBytes, limits } = context;
  const feed = createGroupFeed(context, key.source, settings);
  const checkpointed = await records.checkpoint(key);
  const after = checkpointed ?? settings.after;
  const core = createGroupCore<ReadEvent>({ ...settings, after, lastKnown: checkpointed });
  const consumers = new Map<string, ConsumerLink>();
  const stopping = new AbortController();
  let pumping: Promise<void> | undefined;
  let roomFreed: (() => void) | undefined;
  let replayedUpTo = -1;
  /** The part of this group in the bytes of all groups. */
  let counted = 0;
  let readUpTo = after;
  let stored = after;
  /** Writes run one at a time. */
  let writes: Promise<void> = Promise.resolve();

  const write = (work: () => Promise<void>, onFailure?: () => void): void => {
    writes = writes.then(work).catch((err: unknown) => {
      observer.log?.warn({ ...key, err }, 'persistent subscription write failed');
      onFailure?.();
    });
  };

  /** Skips queued writes that a later one supersedes. */
  const latest = (save: (at: number) => Promise<void>): ((at: number) => void) => {
    let wanted: number | undefined;
    return (at) => {
      const isQueued = wanted !== undefined;
      wanted = at;
      if (isQueued) return;
      write(async () => {
        const now = wanted ?? at;
        wanted = undefined;
        await save(now);
      });
    };
  };
  const checkpoint = latest(async (at) => {
    if (at <= stored) return;
    await records.saveCheckpoint(key, at);
    stored = at;
  });
  const unpark = latest((upTo) => records.unpark(key, upTo));

  const perform = (effect: Effect<ReadEvent>): void => {
    switch (effect.kind) {
      case 'send': {
        const consumer = consumers.get(effect.consumer);
        const full = consumer?.send(effect.message.content, effect.retryCount);
        if (full === undefined) return;
        core.block(effect.consumer, true);
        const unblock = (): void => {
          core.block(effect.consumer, false);
          settle();
        };
        full.then(unblock, () => undefined);
        return;
      }
      case 'park': {
        const { message, reason } = effect;
        write(
          async () => {
            await records.park(key, message.target, { reason, at: message.at });
            core.parked(message.id);
            settle();
          },
          // The message is delivered again at the next tick.
          () => core.parkFailed(message.id),
        );
        return;
      }
      case 'checkpoint':
        checkpoint(effect.at);
        return;
      case 'unpark':
        unpark(effect.upTo);
    }
  };

  /** Performs the effects of the inputs so far. */
  const settle = (): void => {
    for (const effect of core.effects(clock.now())) perform(effect);
    if (!isFull()) roomFreed?.();
  };

  /** Also messages in flight count: a consumer that acknowledges nothing must not fill the memory. */
  const isFull = (): boolean => {
    const { waiting, bytes } = core.stats();
    count(bytes);
    // Acknowledgements of this group make it read on, so a group without messages always reads.
    const isHigh = bytes > 0 && groupBytes.used >= limits.groupBytesMax;
    return waiting >= settings.historyBufferSize || bytes >= bufferBytesMax || isHigh;
  };
  const count = (bytes: number): void => {
    groupBytes.used += bytes - counted;
    counted = bytes;
  };

  const pump = async (): Promise<void> => {
    try {
      for await (const step of feed.follow(readUpTo, stopping.signal)) {
        if (step.kind === 'passed') core.passed(step.at);
        else core.push(step.messages);
        readUpTo = step.kind === 'passed' ? step.at : (step.messages.at(-1)?.at ?? readUpTo);
        settle();
        while (isFull() && !stopping.signal.aborted) {
          await new Promise<void>((resolve) => (roomFreed = resolve));
          roomFreed = undefined;
        }
      }
    } catch (error) {
      if (stopping.signal.aborted && hasCode(error, 'ABORTED')) return;
      // Consumers stay for the messages that the group holds.
      if (hasCode(error, 'STREAM_DELETED')) return;
      observer.log?.warn({ ...key, err: error }, 'persistent subscription lost its source');
      dropConsumers(error instanceof Error ? error : groupDropped(key));
    }
  };

  const dropConsumers = (reason: Error): void => {
    const all = [...consumers.values()];
    consumers.clear();
    for (const consumer of all) {
      core.disconnect(consumer.id);
      consumer.drop(reason);
    }
    updateTimer();
  };

  /** Timeouts need a timer only while consumers are connected. */
  let timer: NodeJS.Timeout | undefined;
  const updateTimer = (): void => {
    if (consumers.size > 0) timer ??= setInterval(tick, tickMs).unref();
    else {
      clearInterval(timer);
      timer = undefined;
      // Save the progress since the last checkpoint, so that it is not repeated.
      checkpoint(core.stats().checkpoint);
    }
  };
  const tick = (): void => {
    core.tick(clock.now());
    settle();
  };

  const drop = async (reason: Error): Promise<void> => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    roomFreed?.();
    dropConsumers(reason);
    await pumping;
    await writes;
    count(0);
  };

  return {
    key,
    settings,
    consumers,
    connect(consumer) {
      if (stopping.signal.aborted) throw groupDropped(key);
      if (!core.connect(consumer.id, consumer.bufferSize, clock.now())) throw groupIsFull(key);
      consumers.set(consumer.id, consumer);
      updateTimer();
      // Reading starts with the first consumer.
      pumping ??= pump().finally(() => (pumping = undefined));
      settle();
    },
    disconnect(id) {
      if (!consumers.delete(id)) return;
      core.disconnect(id);
      settle();
      updateTimer();
    },
    ack(consumer, ids) {
      core.ack(consumer, ids);
      settle();
    },
    nack(consumer, ids, action, reason) {
      core.nack(consumer, ids, action, reason);
      settle();
    },
    async replayParked(stopAt) {
      await writes;
      for (let left = stopAt; left > 0;) {
        const limit = Math.min(left, replayPage);
        const page = await records.readParked(key, replayedUpTo + 1, limit);
        const found = await Promise.all(
          page.map(async (parked) => ({
            parkedAt: parked.link.revision,
            message: await feed.find(parked, stopping.signal),
          })),
        );
        replayedUpTo = page.at(-1)?.link.revision ?? replayedUpTo;
        core.replay(found);
        settle();
        left -= page.length;
        if (page.length < limit) break;
      }
    },
    stats: () => core.stats(),
    countParked: () => records.countParked(key, replayedUpTo + 1),
    drop,
  };
}
