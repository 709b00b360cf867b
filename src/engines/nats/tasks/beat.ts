// A heartbeat connection for another thread: a worker whose step blocks the main thread still counts as alive.

import type { BeatConnection } from '../../../tasks/task-engine.ts';
import { createBucket } from '../connection/bucket.ts';
import { withCodes } from '../connection/connection.ts';
import { openJetStreamWire } from '../connection/jetstream-wire.ts';
import { taskKeys } from './keys.ts';
import { silentObserver } from '../../../foundation/observer.ts';

/** The settings of the engine's `beatThread`. */
export interface NatsBeatSettings {
  readonly url: string;
  readonly bucket: string;
}

export async function openTaskBeat(settings: unknown): Promise<BeatConnection> {
  const { url, bucket: name } = settings as NatsBeatSettings;
  const observer = silentObserver;
  const wire = await withCodes('TASKS', () => openJetStreamWire(url, { observer }));
  const bucket = createBucket(wire, { name, replicas: 1, observer });
  return {
    async beat({ worker, aliveUntilMs }) {
      const data = String(aliveUntilMs);
      await withCodes('TASKS', () => bucket.write([{ key: taskKeys.beat(worker), data }]));
    },
    [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose](),
  };
}
