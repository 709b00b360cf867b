// A call that is refused, in the protocol's own words: a status, the name of the exception and what
// official clients read from the trailers.

import type { StatusDetails } from './status-details.ts';

export interface RefusalParts {
  /** A gRPC status code. */
  readonly status: number;
  /** The trailer `exception`. */
  readonly exception?: string;
  readonly trailers?: Readonly<Record<string, string>>;
  /** Version 2 of the protocol: a message of `google.rpc.Status`'s details. */
  readonly details?: StatusDetails;
  readonly cause?: unknown;
}

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly parts: RefusalParts;

  constructor(message: string, parts: RefusalParts) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.parts = parts;
  }
}

/** The statuses in use, by number, so that pure code needs no gRPC. */
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

export function badRequest(message: string): Refusal {
  return new Refusal(message, { status: status.invalidArgument });
}

export function accessDenied(message = 'Access Denied'): Refusal {
  return new Refusal(message, { status: status.permissionDenied, exception: 'access-denied' });
}

/** Nobody knows who it is; official clients show it as access denied, too. */
export function notAuthenticated(message: string): Refusal {
  return new Refusal(message, { status: status.unauthenticated });
}

export function shuttingDown(): Refusal {
  return new Refusal('the server is shutting down', { status: status.unavailable });
}

/** What goes over the wire as a trailer must be printable ASCII; the rest is percent-encoded. */
export function trailerText(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/gu, (part) => encodeURIComponent(part.toWellFormed()));
}
