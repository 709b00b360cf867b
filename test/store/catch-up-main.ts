// A process that catches up with a whole store, and reports its memory.

import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openStore } from './rig.ts';

export interface CatchUpInput {
  readonly url: string;
  readonly events: number;
}

export interface CatchUpMessage {
  readonly count: number;
  readonly rssAtHalf: number;
  readonly rssMax: number;
}

const { url, events } = childInput() as CatchUpInput;
const store = await openStore('sqlite', url);
let count = 0;
let rssAtHalf = 0;
let rssMax = 0;
for await (const item of store.subscribe()) {
  if (item.kind === 'caughtUp') break;
  if (item.kind !== 'events') continue;
  count += item.events.length;
  const rss = process.memoryUsage.rss();
  if (count >= events / 2) {
    if (rssAtHalf === 0) rssAtHalf = rss;
    rssMax = Math.max(rssMax, rss);
  }
}
tellParent({ count, rssAtHalf, rssMax } satisfies CatchUpMessage);
await store[Symbol.asyncDispose]();
process.channel?.unref();
