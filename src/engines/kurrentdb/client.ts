// The part of the official client that this adapter uses.

import type { EventData, KurrentDBClient, RecordedEvent } from '@kurrent/kurrentdb-client';
import { invalid, kurrentdbConnection, urlForms, urlParts } from '../../contracts/engine-url.ts';
import { loadDriver } from '../../foundation/load-driver.ts';

export type Client = KurrentDBClient;
export type ClientEvent = EventData;
export type ClientRecord = RecordedEvent;

/** Private members of the client: only they report the server's version, close the channel and name a user for reads. */
interface ClientInside {
  readonly capabilities: Promise<{ readonly serverVersion: string }>;
  getChannel(): Promise<{ close(): void }>;
  resolveBridgeCredentials: (perCall: unknown) => Promise<unknown>;
}

/** Returns a function that opens a client. */
export async function loadClient(url: string): Promise<() => Client> {
  const { userinfo = '', user, password } = urlParts(url, 'url', 'kurrentdb');
  const { KurrentDBClient: Driver } = await loadDriver(
    '@kurrent/kurrentdb-client',
    () => import('@kurrent/kurrentdb-client'),
  );
  return () => {
    try {
      const client = Driver.connectionString(kurrentdbConnection(url));
      // The client's bridge does not decode them.
      if (userinfo.includes('%')) {
        const credentials = { username: user, password };
        inside(client).resolveBridgeCredentials = async (perCall) => perCall ?? credentials;
      }
      return client;
    } catch (error) {
      // The client's message may quote the URL. The errors of its options have the class Error and quote none.
      const isPlain = error instanceof Error && error.constructor === Error;
      const reason = isPlain ? error.message : 'its hosts or parameters are wrong';
      throw invalid('url', `invalid KurrentDB URL: ${reason}, as in ${urlForms.kurrentdb.example}`);
    }
  };
}

/** The first request to a server: it fails if the server is unreachable. */
export async function serverVersion(client: Client): Promise<string> {
  return (await inside(client).capabilities).serverVersion;
}

/** Closes the channel too: `dispose` alone cancels the calls but keeps the connection for half an hour. */
export async function closeClient(client: Client): Promise<void> {
  await client.dispose();
  (await inside(client).getChannel()).close();
}

export interface ClientSubscription {
  once(event: 'confirmation', listener: () => void): unknown;
  destroy(error: Error): unknown;
  unsubscribe(): Promise<void>;
}

function inside(client: Client): ClientInside {
  return client as unknown as ClientInside;
}
