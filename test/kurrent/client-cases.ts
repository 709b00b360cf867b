// Runs cases with one of the official clients, on Millrace's server with a memory store.

import { after, describe } from 'node:test';
import { openMemory, type MemoryEngine } from '../../src/engines/memory/index.ts';
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
  /** Without the delay of the bridge before its first connection. */
  readonly url: string;
}

export function serveMemory(options: KurrentServerOptions = {}): Promise<ServedMemory> {
  return serveEngine(openMemory(kurrentStoreOptions), options);
}

export async function serveEngine(
  db: MemoryEngine,
  options: KurrentServerOptions = {},
): Promise<ServedMemory> {
  const { store, subscriptions } = db;
  const { leases } = subscriptions;
  const server = await startKurrentServer(store, { leases, port: 0, ...options });
  return {
    store,
    server,
    url: withoutWait(server.url),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await db[Symbol.asyncDispose]();
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

/** Registers the cases of every topic, each with a separate server and client. */
export async function runClientCases(
  kind: ClientKind,
  topics: Readonly<Record<string, ClientCases>>,
): Promise<void> {
  for (const [topic, cases] of Object.entries(topics)) {
    const served = await serveMemory();
    const client = kind.connect(served.url);
    // A hook of the file, because a skipped suite runs no hooks.
    after(async () => {
      await client[Symbol.asyncDispose]();
      await served[Symbol.asyncDispose]();
    });
    describe(`${kind.name}: ${topic}`, () => cases({ ...client, kind, served }));
  }
}
