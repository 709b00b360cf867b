// A fake of an EventStoreDB: the official client on Millrace's server, with single methods replaced. Each test replaces
// what a real server does otherwise.

import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { openKurrent, type KurrentEngine } from '../../src/engines/kurrentdb/index.ts';
import { openMemory, type MemoryEngine } from '../../src/engines/memory/index.ts';
import { kurrentStoreOptions } from '../../src/server/kurrent/index.ts';
import { serveEngine, type ServedMemory } from './client-cases.ts';

type Methods = {
  [
    Name in 'appendToStream' | 'deleteStream' | 'readAll' | 'readStream' | 'subscribeToAll'
  ]?: KurrentDBClient[Name];
};

export interface FakeServer extends AsyncDisposable {
  readonly backing: MemoryEngine;
  readonly served: ServedMemory;
  /** The client without changes. */
  readonly client: KurrentDBClient;
  /** A store of the adapter whose client has these methods. */
  open(methods: (client: KurrentDBClient) => Methods, options?: Options): Promise<KurrentEngine>;
}

type Options = Parameters<typeof openKurrent>[1];

export async function fakeServer(): Promise<FakeServer> {
  const stack = new AsyncDisposableStack();
  const backing = openMemory(kurrentStoreOptions);
  // The adapter writes metadata and tests read it.
  const served = stack.use(
    await serveEngine(backing, { authenticate: () => ({ scopes: ['admin'] }) }),
  );
  const connect = (): KurrentDBClient => {
    const client = KurrentDBClient.connectionString(served.url);
    stack.defer(async () => {
      await client.dispose();
      const inside = client as unknown as { getChannel(): Promise<{ close(): void }> };
      (await inside.getChannel()).close();
    });
    return client;
  };
  return {
    backing,
    served,
    client: connect(),
    async open(methods, options) {
      const client = connect();
      return stack.use(await openKurrent(replaced(client, methods(client)), options));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Private members of the client need the client itself as `this`. */
function replaced(client: KurrentDBClient, methods: Methods): KurrentDBClient {
  return new Proxy(client, {
    get(target, name) {
      const own = methods[name as keyof Methods];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function'
        ? (value as (...args: never) => unknown).bind(target)
        : value;
    },
  });
}

/** An error of the client with this kind. */
export function clientError(type: string, message = type): Error {
  return Object.assign(new Error(message), { type });
}
