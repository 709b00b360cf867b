// A KurrentDB server over a memory store, and a gRPC client without the logic of the official ones.

import type { TestContext } from 'node:test';
import * as grpc from '@grpc/grpc-js';
import type { Clock } from '../../../foundation/clock.ts';
import { openMemory } from '../../../engines/memory/index.ts';
import {
  kurrentStoreOptions,
  startKurrentServer,
  type KurrentLimits,
} from '../../../server/kurrent/index.ts';
import { loadProtocol, type Protocol } from '../../../server/kurrent/protocol/load-protocol.ts';
import type { EventStore } from '../../../store/event-store.ts';

export interface RawServer {
  readonly store: EventStore;
  readonly client: grpc.Client;
  readonly protocol: Protocol;
  readonly port: number;
}

export async function serveRaw(
  t: TestContext,
  options: {
    readonly limits?: Partial<KurrentLimits>;
    readonly store?: EventStore;
    readonly clock?: Clock;
  } = {},
): Promise<RawServer> {
  const { store = openMemory(kurrentStoreOptions).store, limits = {}, clock } = options;
  const server = await startKurrentServer(store, { port: 0, limits, clock });
  const { port } = server;
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  t.after(async () => {
    client.close();
    await server[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  return { store, client, protocol: await loadProtocol(), port };
}
