// The walk over streams that retention touches: small steps, each of which an engine commits on its
// own, with progress and a way to stop between any two of them.

import { aborted } from '../foundation/clock.ts';
import type { ScavengeProgress, StoreEngine } from './store-engine.ts';

export type ScavengeOptions = Parameters<StoreEngine['scavenge']>[0];

/** Events that a step removes at most: bounds how long an append waits behind one. */
export const scavengeStepMax = 5_000;

/** `removeSome` removes up to `scavengeStepMax` hidden events of a stream and says how many. */
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
