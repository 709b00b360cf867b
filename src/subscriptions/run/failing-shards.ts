// The shards of this process that end again and again without progress, for readiness checks. A shard that ends once and
// then continues is not reported.

import { hasCode } from '../../foundation/error.ts';
import type { Position } from '../../store/position.ts';

export interface FailingShard {
  readonly subscription: string;
  readonly shard: number;
  /** The number of ends since the last progress. */
  readonly failures: number;
  readonly reason: string;
  /** Its checkpoint is lost, so it cannot continue without a reset. */
  readonly isCheckpointLost: boolean;
}

/** Subscriptions of one process report their failing shards here. */
export interface FailingShards {
  list(): readonly FailingShard[];
  /** Returns a function that ends the reports. */
  add(reports: () => readonly FailingShard[]): () => void;
}

export function createFailingShards(): FailingShards {
  const all = new Set<() => readonly FailingShard[]>();
  return {
    list: () => [...all].flatMap((reports) => reports()),
    add(reports) {
      all.add(reports);
      return () => void all.delete(reports);
    },
  };
}

/** A shard that ended so often at one position is failing. */
const failuresMin = 3;

export interface ShardFailures {
  /** Returns the number of ends since the last progress. */
  ended(shard: number, at: Position | undefined, error: unknown): number;
  list(
    subscription: string,
    now: ReadonlyMap<number, { readonly position: Position | undefined; readonly isLive: boolean }>,
  ): readonly FailingShard[];
}

export function createShardFailures(): ShardFailures {
  const failures = new Map<
    number,
    Pick<FailingShard, 'reason' | 'isCheckpointLost'> & {
      readonly at: Position | undefined;
      readonly count: number;
    }
  >();
  const isPast = (position: Position | undefined, at: Position | undefined): boolean =>
    position !== undefined && (at === undefined || position > at);
  return {
    ended(shard, at, error) {
      const before = failures.get(shard);
      const isStuck = before !== undefined && !isPast(at, before.at);
      const reason = error instanceof Error ? error.message : String(error);
      const count = isStuck ? before.count + 1 : 1;
      failures.set(shard, {
        at,
        count,
        reason,
        isCheckpointLost: hasCode(error, 'CHECKPOINT_LOST'),
      });
      return count;
    },
    list: (subscription, now) =>
      [...failures].flatMap(([shard, { at, count, reason, isCheckpointLost }]) => {
        const running = now.get(shard);
        const isWell = running !== undefined && (running.isLive || isPast(running.position, at));
        return (count < failuresMin && !isCheckpointLost) || isWell
          ? []
          : [{ subscription, shard, failures: count, reason, isCheckpointLost }];
      }),
  };
}
