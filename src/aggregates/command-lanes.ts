// Commands for one aggregate take turns within a process: they would only collide at the store.

import { aborted } from '../foundation/clock.ts';
import { aggregateError } from './aggregate-error.ts';

export interface CommandLanes {
  /** Runs the work when all work before it on the same lane has ended, however it ended. */
  run<Result>(
    lane: string,
    work: () => Promise<Result>,
    signal: AbortSignal | undefined,
  ): Promise<Result>;
}

interface Lane {
  last: Promise<void>;
  length: number;
}

export function createCommandLanes(lengthMax: number): CommandLanes {
  const lanes = new Map<string, Lane>();
  return {
    async run(name, work, signal) {
      const lane = lanes.get(name) ?? { last: Promise.resolve(), length: 0 };
      if (lane.length >= lengthMax) throw busy(name, lengthMax);
      const turn = lane.last;
      const { promise: left, resolve: leave } = Promise.withResolvers<void>();
      // Behind the turn as well: who gives up waiting must not let the next one overtake.
      lane.last = turn.then(() => left);
      lane.length += 1;
      lanes.set(name, lane);
      try {
        await unlessAborted(turn, signal);
        return await work();
      } finally {
        leave();
        lane.length -= 1;
        if (lane.length === 0) lanes.delete(name);
      }
    },
  };
}

function unlessAborted(turn: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return turn;
  if (signal.aborted) return Promise.reject(aborted(signal));
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(aborted(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    void turn.finally(() => signal.removeEventListener('abort', onAbort)).then(resolve);
  });
}

function busy(stream: string, lengthMax: number): Error {
  return aggregateError('AGGREGATE_BUSY', `${lengthMax} commands wait for '${stream}' already`, {
    details: { stream, lengthMax },
  });
}
