// What is told about a group: its settings and how it is doing. Pure.

import { showNumber } from './group-records.ts';
import type { Group } from './group.ts';

export interface GroupFacts {
  readonly parked: number;
  /** The source's last number; undefined: it has none. */
  readonly lastKnown: number | undefined;
}

export function groupInfo(
  { key, settings, consumers, stats }: Pick<Group, 'key' | 'settings' | 'consumers' | 'stats'>,
  { parked, lastKnown }: GroupFacts,
): object {
  const now = stats();
  const show = (at: number): string => showNumber(key, at);
  return {
    eventSource: key.source,
    groupName: key.group,
    status: 'Live',
    connections: now.consumers.map(({ id, availableSlots, inFlight, delivered }) => {
      const consumer = consumers.get(id);
      return {
        from: consumer?.peer ?? '',
        username: consumer?.user ?? '',
        totalItems: delivered,
        availableSlots,
        inFlightMessages: inFlight,
        connectionName: consumer?.connectionName ?? '',
      };
    }),
    totalItems: now.delivered,
    lastCheckpointedEventPosition: now.checkpoint > settings.after ? show(now.checkpoint) : '',
    lastKnownEventPosition: lastKnown === undefined ? '' : show(lastKnown),
    resolveLinkTos: settings.resolveLinks,
    startFrom: show(settings.from === 'start' ? 0 : settings.from === 'end' ? -1 : settings.from),
    messageTimeoutMilliseconds: settings.messageTimeoutMs,
    extraStatistics: settings.extraStatistics,
    maxRetryCount: settings.maxRetryCount,
    liveBufferSize: settings.liveBufferSize,
    bufferSize: settings.historyBufferSize,
    readBatchSize: settings.readBatchSize,
    checkPointAfterMilliseconds: settings.checkpointAfterMs,
    minCheckPointCount: settings.minCheckpointCount,
    maxCheckPointCount: settings.maxCheckpointCount,
    readBufferCount: now.waiting,
    retryBufferCount: now.retrying,
    totalInFlightMessages: now.inFlight,
    outstandingMessagesCount: now.inFlight,
    namedConsumerStrategy: settings.strategy,
    maxSubscriberCount: settings.maxSubscriberCount,
    parkedMessageCount: parked,
  };
}
