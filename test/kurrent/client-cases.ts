// Runs cases through one of the official clients, on a server of ours over a store in memory.

import { after, describe } from 'node:test';
import { memoryEventStore } from '../../src/engines/memory/index.ts';
import {
  kurrentStoreOptions,
  startKurrentServer,
  type KurrentServer,
  type KurrentServerOptions,
} from '../../src/server/kurrent/index.ts';
import type { EventStore } from '../../src/store/index.ts';
import type { ClientKind, OfficialClient } from './official-clients.ts';

export interface ServedMemory extends AsyncDisposable {
  readonly store: EventStore;
  readonly server: KurrentServer;
  /** With the bridge's wait before its first connection turned off. */
  readonly url: string;
}

export function serveMemory(options: KurrentServerOptions = {}): Promise<ServedMemory> {
  return serveStore(memoryEventStore(kurrentStoreOptions), options);
}

export async function serveStore(
  store: EventStore,
  options: KurrentServerOptions = {},
): Promise<ServedMemory> {
  const server = await startKurrentServer(store, { port: 0, ...options });
  return {
    store,
    server,
    url: withoutWait(server.url),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

export function withoutWait(url: string): string {
  return `${url}&discoveryInterval=1`;
}

interface ClientContext extends OfficialClient {
  readonly kind: ClientKind;
  readonly served: ServedMemory;
}

export type ClientCases = (context: ClientContext) => void;

/** Registers the cases of every topic, each topic on a server and a client of its own. */
export async function runClientCases(
  kind: ClientKind,
  topics: Readonly<Record<string, ClientCases>>,
): Promise<void> {
  for (const [topic, cases] of Object.entries(topics)) {
    const served = await serveMemory();
    const client = kind.connect(served.url);
    // Of the file, not of the suite: a suite that is left out has none.
    after(async () => {
      await client[Symbol.asyncDispose]();
      await served[Symbol.asyncDispose]();
    });
    describe(`${kind.name}: ${topic}`, () => cases({ ...client, kind, served }));
  }
}
