// The four kinds of gRPC calls as async functions: with the identity of the caller, a signal that aborts when the call ends,
// backpressure, and errors as gRPC statuses.

import type * as GrpcJs from '@grpc/grpc-js';
import { aborted } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
import { whenAborted } from '../../foundation/async/when-aborted.ts';
import { withinTime } from '../../foundation/async/within-time.ts';
import type { Access } from '../../platform/modules/principal.ts';
import { allowsScope, type TokenScope } from '../../platform/tokens/scopes.ts';
import { exhausted } from './append-bytes.ts';
import type { KurrentContext } from './context.ts';
import type { KurrentIdentity } from './kurrent-server.ts';
import type { Protocol } from './protocol/load-protocol.ts';
import type { Empty, Fields, Wire } from './protocol/message.ts';
import { nothing } from './protocol/shared-messages.ts';
import {
  accessDenied,
  encodeStatus,
  notAuthenticated,
  type RpcError,
  status,
  toStatus,
  trailerText,
} from './rpc-error.ts';
import { toRpcError } from './to-rpc-error.ts';

export interface CallInfo {
  readonly identity: KurrentIdentity;
  /** Fires when the client cancels or disconnects, its deadline passes, or its credentials end. */
  readonly signal: AbortSignal;
  readonly peer: string;
  readonly connectionName: string;
}

/** Undefined: continue. Otherwise resolves when the client can receive more. */
export type Send<Response> = (message: Response) => Promise<void> | undefined;

/** A method of a service. */
export interface Method {
  readonly access: Access;
  readonly request: Fields;
  readonly response: Fields;
  readonly requestStream?: boolean | undefined;
  readonly responseStream?: boolean | undefined;
  /** The features in the list of supported methods. */
  readonly features?: readonly string[] | undefined;
  readonly handler: GrpcJs.UntypedHandleCall;
}

/** The requests of a client, pushed; `pause` leaves them unread on the connection. */
export interface Requests<Q> {
  listen(onRequest: (request: Q) => void): void;
  pause(): void;
  resume(): void;
  /** Resolves after the last request; rejects when the call fails. */
  readonly ended: Promise<void>;
}

/** The common part of the four kinds. */
interface AnyCall {
  readonly cancelled: boolean;
  readonly metadata: GrpcJs.Metadata;
  getPeer(): string;
  getPath(): string;
  on(event: 'cancelled', listener: () => void): unknown;
}

export type CallKit = ReturnType<typeof createCallKit>;

/** Makes methods from the tables of their messages and an async function. */
export function createCallKit(
  context: Pick<KurrentContext, 'limits' | 'access' | 'clock' | 'protocol' | 'observer'>,
) {
  let running = 0;
  let waiting: (() => void)[] = [];

  /** Runs one call; its error goes to `fail` as a gRPC error. */
  const run = async <T>(
    call: AnyCall,
    access: TokenScope,
    work: (info: CallInfo) => Promise<T>,
    done: (result: T) => void,
    fail: (error: GrpcJs.ServiceError) => void,
  ): Promise<void> => {
    if (running >= context.limits.callsMax) return fail(toServiceError(tooManyCalls()));
    running += 1;
    const cancelling = new AbortController();
    const cancel = (): void => cancelling.abort();
    call.on('cancelled', cancel);
    let identity: KurrentIdentity | undefined;
    try {
      const [authorization] = call.metadata.get('authorization');
      identity = await context.access.identify(authorization?.toString());
      if (!allowsScope(identity.scopes, access)) throw accessDenied();
      identity.ended?.addEventListener('abort', cancel, { once: true });
      const info = {
        identity,
        signal: cancelling.signal,
        peer: call.getPeer(),
        connectionName: call.metadata.get('connection-name')[0]?.toString() ?? '',
      };
      const result = await work(info);
      if (!call.cancelled) done(result);
      count(call, 0);
    } catch (error) {
      const hasEnded = identity?.ended?.aborted === true && hasCode(error, 'ABORTED');
      const rpcError = toServiceError(
        hasEnded ? notAuthenticated('the credentials have expired or were revoked') : error,
      );
      count(call, call.cancelled ? status.cancelled : rpcError.code);
      // A cancelled call has no receiver for the error.
      if (!call.cancelled) fail(rpcError);
    } finally {
      identity?.ended?.removeEventListener('abort', cancel);
      running -= 1;
      if (running === 0) {
        for (const resolve of waiting) resolve();
        waiting = [];
      }
    }
  };

  const count = (call: AnyCall, code: number): void => {
    context.observer.count?.('kurrent_calls_total', { method: call.getPath(), status: code });
  };

  const toServiceError = (error: unknown): GrpcJs.ServiceError => {
    const rpcError = toRpcError(error, context.limits);
    if (rpcError.parts.status === status.internal) {
      context.observer.log?.error({ err: rpcError.cause ?? rpcError }, 'kurrent call failed');
    }
    return serviceError(context.protocol, rpcError);
  };

  return {
    unary<Q extends Fields, R extends Fields>(
      access: TokenScope,
      request: Q,
      response: R,
      work: (request: Wire<Q>, info: CallInfo) => Promise<Wire<R>>,
    ): Method {
      const handler: GrpcJs.handleUnaryCall<Wire<Q>, Wire<R>> = (call, callback) =>
        void run(
          call,
          access,
          (info) => work(call.request, info),
          (result) => callback(null, result),
          (error) => callback(error),
        );
      return { access, request, response, handler };
    },
    /** Without authentication: clients request server features before they send credentials. */
    anonymous<R extends Fields>(response: R, work: () => Wire<R>): Method {
      const handler: GrpcJs.handleUnaryCall<Empty, Wire<R>> = (_call, callback) => {
        try {
          callback(null, work());
        } catch (error) {
          callback(toServiceError(error));
        }
      };
      return { access: 'anonymous', request: nothing, response, handler };
    },
    /** A stream of requests, then one response. */
    collect<Q extends Fields, R extends Fields>(
      access: TokenScope,
      request: Q,
      response: R,
      work: (requests: AsyncIterable<Wire<Q>>, info: CallInfo) => Promise<Wire<R>>,
    ): Method {
      const handler: GrpcJs.handleClientStreamingCall<Wire<Q>, Wire<R>> = (call, callback) =>
        void run(
          call,
          access,
          (info) => work(untilIdle(call as AsyncIterable<Wire<Q>>, info, context), info),
          (result) => callback(null, result),
          (error) => callback(error),
        );
      return { access, request, response, requestStream: true, handler };
    },
    /** One request, then a stream of responses. */
    serve<Q extends Fields, R extends Fields>(
      access: TokenScope,
      request: Q,
      response: R,
      work: (request: Wire<Q>, send: Send<Wire<R>>, info: CallInfo) => Promise<void>,
    ): Method {
      const handler: GrpcJs.handleServerStreamingCall<Wire<Q>, Wire<R>> = (call) =>
        void run(
          call,
          access,
          async (info) => {
            await work(call.request, sender(call, info.signal), info);
            rejectAborted(info.signal);
          },
          () => call.end(),
          (error) => call.emit('error', error),
        );
      return { access, request, response, responseStream: true, handler };
    },
    /** Streams of requests and responses. */
    converse<Q extends Fields, R extends Fields>(
      access: TokenScope,
      request: Q,
      response: R,
      work: (requests: Requests<Wire<Q>>, send: Send<Wire<R>>, info: CallInfo) => Promise<void>,
    ): Method {
      const handler: GrpcJs.handleBidiStreamingCall<Wire<Q>, Wire<R>> = (call) => {
        const ended = new Promise<void>((resolve, reject) => {
          call.on('end', resolve);
          call.on('error', reject);
          call.on('cancelled', () => reject(aborted()));
        });
        ended.catch(() => undefined);
        const cancelled = new AbortController();
        call.on('cancelled', () => cancelled.abort());
        void run(
          call,
          access,
          async (info) => {
            using stop = whenAborted(info.signal);
            const over = stop.aborted.then(() => Promise.reject(aborted(info.signal)));
            const either = Promise.race([ended, over]);
            // The handler may return before the call ends, so a later rejection must not be unhandled.
            either.catch(() => undefined);
            await work(
              {
                listen: (onRequest) => void call.on('data', onRequest),
                pause: () => void call.pause(),
                resume: () => void call.resume(),
                ended: either,
              },
              // Results of completed work are sent even after the credentials have expired or were revoked.
              sender(call, cancelled.signal),
              info,
            );
          },
          () => call.end(),
          (error) => call.emit('error', error),
        );
      };
      return { access, request, response, requestStream: true, responseStream: true, handler };
    },
    /** Resolves when no call is running. */
    idle: (): Promise<void> =>
      running === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
  };
}

function rejectAborted(signal: AbortSignal): void {
  if (signal.aborted) throw aborted(signal);
}

/** Stops waiting for requests when the credentials end. */
async function* untilIdle<Q>(
  requests: AsyncIterable<Q>,
  { signal }: Pick<CallInfo, 'signal'>,
  { clock, limits: { openAppendIdleMsMax: ms } }: Pick<KurrentContext, 'clock' | 'limits'>,
): AsyncGenerator<Q, void, undefined> {
  const late = (): never => {
    throw exhausted(`no message of the call within ${ms} ms`);
  };
  using stop = whenAborted(signal);
  const over = stop.aborted.then(() => Promise.reject(aborted(signal)));
  over.catch(() => undefined);
  const iterator = requests[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await withinTime(Promise.race([iterator.next(), over]), { ms, late, clock });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    // Not awaited, because the client may never send another request.
    void iterator.return?.();
  }
}

function tooManyCalls(): RpcError {
  return exhausted('the server has reached its maximum of calls');
}

function sender<R>(
  call: {
    write(message: R): boolean;
    once(event: 'drain', listener: () => void): unknown;
    off(event: 'drain', listener: () => void): unknown;
  },
  signal: AbortSignal,
): Send<R> {
  let draining: Promise<void> | undefined;
  return (message) => {
    if (!signal.aborted && call.write(message)) return undefined;
    draining ??= new Promise<void>((resolve, reject) => {
      if (signal.aborted) return reject(aborted(signal));
      const leave = (): void => {
        draining = undefined;
        call.off('drain', onDrain);
        signal.removeEventListener('abort', onAbort);
      };
      const onDrain = (): void => {
        leave();
        resolve();
      };
      const onAbort = (): void => {
        leave();
        reject(aborted(signal));
      };
      call.once('drain', onDrain);
      signal.addEventListener('abort', onAbort, { once: true });
    });
    // A caller may ignore the promise, so its rejection must not be unhandled.
    draining.catch(() => undefined);
    return draining;
  };
}

function serviceError(protocol: Protocol, rpcError: RpcError): GrpcJs.ServiceError {
  const { status: code, exception, trailers = {}, details } = rpcError.parts;
  const metadata = new protocol.grpc.Metadata();
  if (exception !== undefined) metadata.set('exception', exception);
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, trailerText(value));
  if (details !== undefined) {
    const { message } = rpcError;
    const bytes = encodeStatus(protocol, toStatus(protocol, { code, message, details }));
    metadata.set('grpc-status-details-bin', bytes);
  }
  return Object.assign(new Error(rpcError.message), { code, details: rpcError.message, metadata });
}
