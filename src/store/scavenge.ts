// Walks over the streams with retention in small steps. The engine commits each step separately,
// reports progress after it and may be aborted between two steps.

import { aborted } from '../foundation/clock.ts';
import type { ScavengeProgress, StoreEngine } from './store-engine.ts';

export type ScavengeOptions = Parameters<StoreEngine['scavenge']>[0];

/** Maximum events removed per step: limits how long an append waits for a step. */
export const scavengeStepMax = 1_000;

/** `removeSome` removes up to `scavengeStepMax` hidden events of a stream and returns the count. */
export async function scavengeStreams<Stream>(
  streams: readonly Stream[],
  { signal, onProgress }: ScavengeOptions,
  removeSome: (stream: Stream) => Promise<number>,
): Promise<ScavengeProgress> {
  let streamsDone = 0;
  let eventsRemoved = 0;
  const progress = (): ScavengeProgress => ({
    streamsDone,
    streamsTotal: streams.length,
    eventsRemoved,
  });
  for (const stream of streams) {
    let removed = scavengeStepMax;
    while (removed === scavengeStepMax) {
      if (signal?.aborted === true) throw aborted(signal);
      removed = await removeSome(stream);
      eventsRemoved += removed;
      if (removed === scavengeStepMax) onProgress?.(progress());
    }
    streamsDone += 1;
    onProgress?.(progress());
  }
  return progress();
}
