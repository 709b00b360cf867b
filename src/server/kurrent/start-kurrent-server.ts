// Opens the port, speaks the protocol, and leaves nobody in the middle of a sentence when it stops.

import { hostname } from 'node:os';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import { createAccess } from './access.ts';
import { createCallKit } from './calls.ts';
import type { KurrentContext } from './context.ts';
import { earlyHeaders } from './early-headers.ts';
import { kurrentLimits, type KurrentServer, type KurrentServerOptions } from './kurrent-server.ts';
import { groupConfigStream } from './persistent/group-records.ts';
import { createGroups, type Groups } from './persistent/groups.ts';
import type { Address } from './persistent/leadership.ts';
import { loadProtocol } from './protocol/load-protocol.ts';
import { Refusal } from './refusal.ts';
import { createServices, toDefinition } from './services.ts';
import { authorityOf, isLoopback, listen, shutDown } from './listen.ts';
import { createSubscriptionSlots } from './subscription-slots.ts';

/**
 * Starts a server that the official KurrentDB and EventStoreDB clients take for a KurrentDB. The
 * store stays the caller's: it must be open to foreign names (`kurrentStoreOptions`), and it is
 * closed after the server, not by it.
 *
 * @example
 * import { memoryEventStore } from 'millrace/adapters/memory';
 * import { kurrentStoreOptions, startKurrentServer } from 'millrace/server/kurrent';
 *
 * await using store = memoryEventStore(kurrentStoreOptions);
 * await using server = await startKurrentServer(store, { port: 0 });
 * console.log(server.url); // kurrentdb://127.0.0.1:40123?tls=false
 */
export async function startKurrentServer(
  store: EventStore,
  options: KurrentServerOptions = {},
): Promise<KurrentServer> {
  const { host = '127.0.0.1', port = 2113, tls, observer = silentObserver } = options;
  const { clock = systemClock, tenants, signal } = options;
  checkHost(host, options);
  refuseAborted(signal);
  const limits = { ...kurrentLimits, ...options.limits };
  const protocol = await loadProtocol();
  const stopping = new AbortController();
  const context: KurrentContext = {
    store,
    protocol,
    limits,
    access: createAccess(options),
    tenants,
    subscriptions: createSubscriptionSlots(limits.subscriptionsMax),
    observer,
    clock,
    stopping: stopping.signal,
  };
  const { grpc } = protocol;
  const server = new grpc.Server({
    'grpc.max_receive_message_length': limits.messageBytesMax,
    'grpc.max_concurrent_streams': limits.callsPerConnectionMax,
    'grpc.keepalive_time_ms': limits.keepaliveIntervalMs,
    'grpc.keepalive_timeout_ms': limits.keepaliveTimeoutMs,
    interceptors: [earlyHeaders(grpc)],
  });
  const calls = createCallKit(context);
  let bound = port;
  const address = (): Address =>
    options.advertise ?? { host: reachableName(nameOf(host, tls)), port: bound };
  const groups = createGroups(context, address);
  const services = createServices(context, groups, calls, address);
  for (const [service, methods] of Object.entries(services)) {
    const handlers = Object.entries(methods).map(([name, { handler }]) => [name, handler]);
    server.addService(toDefinition(protocol, service, methods), Object.fromEntries(handlers));
  }

  const stop = once(async () => {
    signal?.removeEventListener('abort', onAbort);
    stopping.abort();
    await groups[Symbol.asyncDispose]();
    await shutDown(server, calls.idle(), limits.stopMsMax);
  });
  const onAbort = (): void => void stop();
  try {
    bound = await listen(protocol, server, { host, port, tls });
    // Who was not there yet when the signal fired did not hear it.
    refuseAborted(signal);
    await takeUpGroups(store, groups);
    refuseAborted(signal);
  } catch (error) {
    await stop();
    throw error;
  }
  signal?.addEventListener('abort', onAbort, { once: true });
  observer.log?.info({ host, port: bound }, 'kurrent server listens');
  return {
    port: bound,
    url: `kurrentdb://${authorityOf(nameOf(host, tls))}:${bound}?tls=${tls !== undefined}`,
    [Symbol.asyncDispose]: stop,
  };
}

/** Whoever has no groups yet need not stand for their lead before somebody asks. */
async function takeUpGroups(store: EventStore, groups: Pick<Groups, 'lead'>): Promise<void> {
  if ((await store.streamInfo(groupConfigStream)) === undefined) return;
  try {
    await groups.lead();
  } catch (error) {
    // Another server leads.
    if (!(error instanceof Refusal)) throw error;
  }
}

/** An address that means "all of them" leads nobody here. */
function reachableName(host: string): string {
  return host === '0.0.0.0' || host === '::' ? hostname() : host;
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= work());
}

function refuseAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw aborted(signal);
}

/** Where clients are told to find it: they refuse to do TLS with an address in place of a name. */
function nameOf(host: string, tls: KurrentServerOptions['tls']): string {
  return tls !== undefined && host === '127.0.0.1' ? 'localhost' : host;
}

/** An open door is for those on the same machine, and so are passwords that everybody can read. */
function checkHost(host: string, { authenticate, tls }: KurrentServerOptions): void {
  if (isLoopback(host)) return;
  const problem =
    authenticate === undefined
      ? "would be open to everybody: pass 'authenticate' (by tokens: authenticateByTokens)"
      : tls === undefined
        ? "would take passwords over the network in clear: pass 'tls', or listen on 127.0.0.1 behind a proxy that has it"
        : undefined;
  if (problem === undefined) return;
  throw new MillraceError('CONFIG_INVALID', `the kurrent server at '${host}' ${problem}`, {
    details: { field: authenticate === undefined ? 'authenticate' : 'tls', host },
  });
}
