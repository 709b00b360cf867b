// A server in a process of its own, and the official client that talks to it.

import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { startChild } from '../../src/testing/child-process.ts';

export interface ServedInput {
  /** Ours keeps its events here. */
  readonly file: string;
  /** What the echo has to say when it is read. */
  readonly eventsPerStream: number;
  /** The echo answers an append when its bytes are on the disk, and still keeps nothing. */
  readonly isSynced?: boolean;
}

export interface ServedMessage {
  readonly kind: 'listening';
  readonly port: number;
}

export interface Served {
  readonly client: KurrentDBClient;
  readonly close: () => Promise<void>;
}

export async function startServed(script: URL, input: ServedInput): Promise<Served> {
  const child = startChild(script, { input });
  const { port } = await child.message(
    (message): message is ServedMessage => (message as ServedMessage).kind === 'listening',
  );
  const client = KurrentDBClient.connectionString(
    `kurrentdb://127.0.0.1:${port}?tls=false&discoveryInterval=1`,
  );
  return {
    client,
    async close() {
      await client.dispose();
      await child.kill();
    },
  };
}
