// The settings of a persistent subscription: parsed from a request and validated.

import type { EventFilter } from '../../../store/event-filter.ts';
import { toCount } from '../protocol/wire-number.ts';
import type { RpcError } from '../rpc-error.ts';
import { groupFailed } from './group-errors.ts';
import type { GroupKey } from './group-records.ts';
import type { From } from '../streams/read-plan.ts';
import { strategyNames, type StrategyName } from './consumer-strategy.ts';
import type { WireSettings } from '../protocol/persistent-messages.ts';

export interface GroupSettings {
  /** The start that the client requested. */
  readonly from: From;
  /** The number after which the group starts, resolved from `from` at its creation. */
  readonly after: number;
  readonly resolveLinks: boolean;
  readonly extraStatistics: boolean;
  /** Time after which an unacknowledged message is retried; 0 disables it. */
  readonly messageTimeoutMs: number;
  readonly maxRetryCount: number;
  readonly checkpointAfterMs: number;
  readonly minCheckpointCount: number;
  readonly maxCheckpointCount: number;
  /** Maximum number of consumers; 0 means no limit. */
  readonly maxSubscriberCount: number;
  readonly liveBufferSize: number;
  readonly readBatchSize: number;
  readonly historyBufferSize: number;
  readonly strategy: StrategyName;
  /** Only for groups of `$all`. */
  readonly filter?: EventFilter | undefined;
}

/** Upper bounds of settings, because they determine the memory of a group. */
const groupBounds = { bufferMax: 10_000, batchMax: 1_000 } as const;

const ticksPerMs = 10_000;

export function parseSettings(
  wire: WireSettings,
  start: Pick<GroupSettings, 'from' | 'after'>,
  key: GroupKey,
): GroupSettings {
  const invalid = (reason: string): RpcError => groupFailed(key, reason);
  const settings: GroupSettings = {
    ...start,
    resolveLinks: wire.resolveLinks,
    extraStatistics: wire.extraStatistics,
    messageTimeoutMs: wire.messageTimeoutMs ?? fromTicks(wire.messageTimeoutTicks) ?? 30_000,
    maxRetryCount: wire.maxRetryCount,
    checkpointAfterMs: wire.checkpointAfterMs ?? fromTicks(wire.checkpointAfterTicks) ?? 2_000,
    minCheckpointCount: wire.minCheckpointCount,
    maxCheckpointCount: wire.maxCheckpointCount,
    maxSubscriberCount: wire.maxSubscriberCount,
    liveBufferSize: wire.liveBufferSize,
    readBatchSize: wire.readBatchSize,
    historyBufferSize: wire.historyBufferSize,
    strategy: strategyOf(wire, invalid),
  };
  for (const [name, value] of Object.entries(settings)) {
    if (name !== 'after' && typeof value === 'number' && value < 0) {
      throw invalid(`${name} must not be negative`);
    }
  }
  if (settings.historyBufferSize <= settings.readBatchSize) {
    throw invalid('historyBufferSize must be larger than readBatchSize');
  }
  if (settings.readBatchSize > groupBounds.batchMax) {
    throw invalid(`readBatchSize must be at most ${groupBounds.batchMax}`);
  }
  if (Math.max(settings.historyBufferSize, settings.liveBufferSize) > groupBounds.bufferMax) {
    throw invalid(`buffers must be at most ${groupBounds.bufferMax}`);
  }
  return settings;
}

function strategyOf(
  { consumerStrategy, namedConsumerStrategy }: WireSettings,
  invalid: (reason: string) => RpcError,
): StrategyName {
  if (consumerStrategy === '') return strategyNames[namedConsumerStrategy] ?? 'RoundRobin';
  const named = strategyNames.find((name) => name === consumerStrategy);
  if (named === undefined) throw invalid(`unknown consumer strategy '${consumerStrategy}'`);
  return named;
}

function fromTicks(ticks: Parameters<typeof toCount>[0] | undefined): number | undefined {
  return ticks === undefined ? undefined : Math.floor(toCount(ticks) / ticksPerMs);
}
