// A server in a separate process, and the official client connected to it.

import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { startChild } from '../../src/testing/child-process.ts';

export interface ServedInput {
  /** The file in which our server keeps its events. */
  readonly file: string;
  /** The number of events that the echo server returns for a read. */
  readonly eventsPerStream: number;
  /** The echo server responds to an append after a sync to disk, and still stores nothing. */
  readonly isSynced?: boolean | undefined;
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
