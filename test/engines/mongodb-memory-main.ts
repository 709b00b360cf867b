// A process with little memory that writes far more than fits into it, and reads everything back.

import { openMongo } from '../../src/engines/mongodb/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { newEvent, streamName } from '../store/rig.ts';

export interface MemoryInput {
  readonly url: string;
  readonly database: string;
  readonly appends: number;
  readonly eventsPerAppend: number;
  readonly payloadChars: number;
}

export interface MemoryMessage {
  readonly read: number;
}

const { url, database, appends, eventsPerAppend, payloadChars } = childInput() as MemoryInput;
const streams = 7;
const engine = await openMongo(url, { database });
const { store } = engine;
for (let append = 0; append < appends; append += 1) {
  const events = Array.from({ length: eventsPerAppend }, (_, index) =>
    newEvent(`${append}-${index}`, { payload: { text: String(index % 10).repeat(payloadChars) } }),
  );
  // Appends are acknowledged before they are copied: without a limit, the queue of copies would fill the memory.
  const expected = append < streams ? 'none' : Math.floor(append / streams) * eventsPerAppend - 1;
  await store.append(streamName(append % streams), events, { expected });
}
let read = 0;
for await (const item of store.subscribe({ pageSize: 150 })) {
  if (item.kind === 'events') read += item.events.length;
  if (item.kind === 'caughtUp') break;
}
tellParent({ read } satisfies MemoryMessage);
await engine[Symbol.asyncDispose]();
process.channel?.unref();
