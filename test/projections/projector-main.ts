// A process that projects until it is killed: live, as a rebuild, or inline with its own appends.

import {
  inlineProjections,
  rebuildProjection,
  startProjection,
} from '../../src/projections/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { newEvent, openEngine, streamName, type EngineName } from '../store/rig.ts';
import { itemProjection } from './item-projection.ts';

export interface ProjectorInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly role: 'run' | 'rebuild' | 'inline';
  readonly version: number;
  readonly shards: number;
  readonly leaseMs: number;
  /** The prefix of the event ids that the role `inline` appends. */
  readonly name: string;
  readonly streams: number;
}

export type ProjectorMessage =
  /** The first event was applied. */
  | { readonly kind: 'working' }
  /** The first events were appended, with their documents. */
  | { readonly kind: 'appended' }
  | { readonly kind: 'progress'; readonly events: number; readonly done: number }
  | { readonly kind: 'done'; readonly events: number };

const { engine, url, role, version, shards, leaseMs, name, streams } =
  childInput() as ProjectorInput;
const db = await openEngine(engine, url, { connectionsMax: 6 });
const report = (message: ProjectorMessage): void => tellParent(message);
let hasWorked = false;
const items = itemProjection(version, shards, () => {
  if (!hasWorked) report({ kind: 'working' });
  hasWorked = true;
});

if (role === 'run') {
  await using runner = await startProjection(db, items, {
    leaseMs,
    checkpointEvery: 40,
    checkpointMs: 50,
    pageSize: 60,
  });
  // Runs until it is killed.
  while (runner.state === 'started') await new Promise((resolve) => setTimeout(resolve, 1_000));
} else if (role === 'rebuild') {
  const { events } = await rebuildProjection(db, items, {
    pageSize: 50,
    leaseMs,
    onProgress: (progress) =>
      report({ kind: 'progress', events: progress.events, done: progress.done }),
  });
  await db[Symbol.asyncDispose]();
  report({ kind: 'done', events });
  process.channel?.unref();
} else {
  const projecting = await inlineProjections(db, [items]);
  for (let round = 0; ; round += 1) {
    const appends = Array.from({ length: 4 }, (_, each) => {
      const stream = streamName((round * 7 + each) % streams);
      return projecting.append(stream, [newEvent(`${name}-${round}-${each}`)]);
    });
    await Promise.all(appends);
    if (round === 0) report({ kind: 'appended' });
  }
}
