// Errors of calls in the terms of the protocol: status, exception name, and the trailers that official clients read.

import type { Protocol } from './protocol/load-protocol.ts';
import type { Fields } from './protocol/message.ts';
import { rpcStatus, type WireStatus } from './protocol/shared-messages.ts';

export interface RpcErrorParts {
  /** A gRPC status code. */
  readonly status: number;
  /** The trailer `exception`. */
  readonly exception?: string | undefined;
  readonly trailers?: Readonly<Record<string, string>> | undefined;
  /** For version 2 of the protocol: a typed detail of `google.rpc.Status`. */
  readonly details?: StatusDetails | undefined;
  readonly cause?: unknown;
}

export class RpcError extends Error {
  override readonly name = 'RpcError';
  readonly parts: RpcErrorParts;

  constructor(message: string, parts: RpcErrorParts) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.parts = parts;
  }
}

/** gRPC status codes, so that pure code does not load gRPC. */
export const status = {
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export function badRequest(message: string): RpcError {
  return new RpcError(message, { status: status.invalidArgument });
}

export function accessDenied(message = 'Access Denied'): RpcError {
  return new RpcError(message, { status: status.permissionDenied, exception: 'access-denied' });
}

/** Official clients show this as access denied as well. */
export function notAuthenticated(message: string): RpcError {
  return new RpcError(message, { status: status.unauthenticated });
}

export function shuttingDown(): RpcError {
  return new RpcError('the server is shutting down', { status: status.unavailable });
}

/** Trailers must be printable ASCII: other characters are percent-encoded. */
export function trailerText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/gu, (part) => encodeURIComponent(part.toWellFormed()));
}

/** A typed message in the details of `google.rpc.Status`. */
export interface StatusDetails {
  /** The name of the message on the wire. */
  readonly type: string;
  readonly message: Fields;
  readonly value: object;
}

export function toStatus(
  protocol: Protocol,
  {
    code,
    message,
    details,
  }: { code: number; message: string; details?: StatusDetails | undefined },
): WireStatus {
  if (details === undefined) return { code, message };
  const value = protocol.codec(details.message).encode(details.value);
  return { code, message, details: { typeUrl: `type.googleapis.com/${details.type}`, value } };
}

export function encodeStatus(protocol: Protocol, value: WireStatus): Buffer {
  return protocol.codec(rpcStatus).encode(value);
}
