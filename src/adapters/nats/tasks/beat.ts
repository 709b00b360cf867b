// Another thread says that a worker is alive, over a connection of its own: a step that keeps the main one
// busy is not taken for dead.

import type { BeatConnection } from '../../../tasks/task-engine.ts';
import { openJetStreamWire } from '../connection/jetstream-wire.ts';
import { asTasks, createTaskBucket } from './bucket.ts';
import { taskKeys } from './keys.ts';
import { silentObserver } from '../../../foundation/observer.ts';

/** What `beatThread` of the engine carries along. */
export interface NatsBeatSettings {
  readonly url: string;
  readonly bucket: string;
}

export async function openTaskBeat(settings: unknown): Promise<BeatConnection> {
  const { url, bucket: name } = settings as NatsBeatSettings;
  const observer = silentObserver;
  const wire = await asTasks(() => openJetStreamWire(url, { observer }));
  const options = { bucket: name, replicas: 1, observer, onAnew: () => undefined };
  const bucket = createTaskBucket(wire, options);
  return {
    async beat({ worker, aliveUntilMs }) {
      const data = String(aliveUntilMs);
      await asTasks(() => bucket.write([{ key: taskKeys.beat(worker), data }]));
    },
    [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose](),
  };
}
