// Starts the KurrentDB-compatible server: opens the port, serves the protocol, and completes running calls before it stops.

import type * as GrpcJs from '@grpc/grpc-js';
import { hostname } from 'node:os';
import { aborted, systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { silentObserver } from '../../foundation/observer.ts';
import type { EventStore } from '../../store/event-store.ts';
import { createStreamOwner } from '../../store/stream-owners.ts';
import { createAccess, type Access } from './access.ts';
import { createCallKit } from './calls.ts';
import { type KurrentContext, createSubscriptionSlots } from './context.ts';
import { kurrentLimits, type KurrentServer, type KurrentServerOptions } from './kurrent-server.ts';
import { groupConfigStream } from './persistent/group-records.ts';
import { createGroups, type Groups } from './persistent/groups.ts';
import type { Address } from './persistent/leadership.ts';
import { loadProtocol } from './protocol/load-protocol.ts';
import { RpcError } from './rpc-error.ts';
import { createServices, toDefinition } from './services.ts';
import { isLoopback } from '../http/reach.ts';
import { authorityOf, listen, shutDown } from './listen.ts';

/**
 * Starts a server for the official KurrentDB and EventStoreDB clients. The store must accept any names
 * (`kurrentStoreOptions`). The caller closes the store after the server.
 *
 * @example
 * import { openMemory } from 'millrace/engines/memory';
 * import { kurrentStoreOptions, startKurrentServer } from 'millrace/server/kurrent';
 *
 * await using db = openMemory(kurrentStoreOptions);
 * await using server = await startKurrentServer(db.store, { port: 0 });
 * console.log(server.url); // kurrentdb://127.0.0.1:40123?tls=false
 */
export function startKurrentServer(
  store: EventStore,
  options: KurrentServerOptions = {},
): Promise<KurrentServer> {
  return startInterceptedServer(store, options, {});
}

/** For tests: the interceptors see all messages, the last one first those of the handlers; `access` replaces the rules. */
export async function startInterceptedServer(
  store: EventStore,
  options: KurrentServerOptions,
  {
    interceptors = [],
    access,
  }: { readonly interceptors?: readonly GrpcJs.ServerInterceptor[]; readonly access?: Access },
): Promise<KurrentServer> {
  const { host = '127.0.0.1', port = 2113, tls, observer = silentObserver } = options;
  const { clock = systemClock, signal } = options;
  checkHost(host, options);
  rejectAborted(signal);
  const limits = { ...kurrentLimits, ...options.limits };
  const protocol = await loadProtocol();
  const ownerOf = createStreamOwner(store, options.tenants);
  const stopping = new AbortController();
  const context: KurrentContext = {
    store,
    leases: options.leases,
    protocol,
    limits,
    access: access ?? createAccess(options, ownerOf),
    ownerOf,
    audit: options.audit,
    accept: options.accept,
    hider: options.hider,
    subscriptions: createSubscriptionSlots(limits.subscriptionsMax),
    appendBytes: { open: 0, running: 0 },
    groupBytes: { used: 0 },
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
    interceptors: [earlyHeaders(grpc), ...interceptors],
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
    // The signal may have fired before the listener below is added.
    rejectAborted(signal);
    await resumeGroups(store, groups);
    rejectAborted(signal);
  } catch (error) {
    await stop();
    throw error;
  }
  signal?.addEventListener('abort', onAbort, { once: true });
  observer.log?.info({ host, port: bound }, 'kurrent server listening');
  return {
    port: bound,
    url: `kurrentdb://${authorityOf(nameOf(host, tls))}:${bound}?tls=${tls !== undefined}`,
    [Symbol.asyncDispose]: stop,
  };
}

/** Without stored groups the election starts with the first use of one. */
async function resumeGroups(store: EventStore, groups: Pick<Groups, 'lead'>): Promise<void> {
  if ((await store.streamInfo(groupConfigStream)) === undefined) return;
  try {
    await groups.lead();
  } catch (error) {
    // An RpcError means that another server leads.
    if (!(error instanceof RpcError)) throw error;
  }
}

/** Clients cannot connect to a wildcard address. */
function reachableName(host: string): string {
  return host === '0.0.0.0' || host === '::' ? hostname() : host;
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= work());
}

function rejectAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw aborted(signal);
}

/** The host for clients: they reject TLS with an IP address instead of a name. */
function nameOf(host: string, tls: KurrentServerOptions['tls']): string {
  return tls !== undefined && host === '127.0.0.1' ? 'localhost' : host;
}

/** Access without authentication, or with unencrypted passwords, is limited to the same machine. */
function checkHost(host: string, { authenticate, tls }: KurrentServerOptions): void {
  if (isLoopback(host)) return;
  const problem =
    authenticate === undefined
      ? "would be open to all callers: pass 'authenticate', for example authenticateByTokens(tokens)"
      : tls === undefined
        ? "would receive unencrypted passwords: pass 'tls', or listen on 127.0.0.1 behind a proxy with TLS"
        : undefined;
  if (problem === undefined) return;
  throw new MillraceError('CONFIG_INVALID', `the kurrent server at '${host}' ${problem}`, {
    details: { field: authenticate === undefined ? 'authenticate' : 'tls', host },
  });
}

/**
 * Sends response headers as soon as request headers arrive. The official client sends header and body of a call as two
 * packets, the second after the acknowledgement of the first. A kernel delays that by 40 ms unless it has data to send.
 */
export function earlyHeaders(grpc: typeof GrpcJs): GrpcJs.ServerInterceptor {
  return (_method, call) =>
    new grpc.ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, go) {
            call.sendMetadata(new grpc.Metadata());
            go(metadata);
          },
        }),
    });
}
