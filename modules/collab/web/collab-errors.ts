// Errors as `{ error: { code, message, details } }`: the requirement document prescribes this format, so this module does
// not use the problem+json format of the rest of the API.

import { Type } from 'millrace/contracts';
import { MillraceError } from 'millrace/foundation';
import type { ErrorShape, ProblemDetails } from 'millrace/platform';

export type CollabErrorCode = (typeof codes)[number];

const codes = [
  'VALIDATION_ERROR',
  'UNAUTHORIZED',
  'FORBIDDEN',
  'NOT_FOUND',
  'CONFLICT',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_ERROR',
] as const;

const byStatus: Readonly<Record<number, CollabErrorCode>> = {
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  410: 'NOT_FOUND',
  422: 'CONFLICT',
  429: 'RATE_LIMIT_EXCEEDED',
};

/** Statuses of rejected commands by their reason. Default: 409. */
const statusByReason: Readonly<Record<string, number>> = {
  'chat-unknown': 404,
  'workspace-unknown': 404,
  'invite-unknown': 404,
  'member-unknown': 404,
  'notification-unknown': 404,
  'task-unknown': 404,
  'user-unknown': 404,
  'not-a-member': 404,
  'not-a-participant': 404,
  'not-an-admin': 403,
  'not-the-author': 403,
  'too-late': 403,
};

export function collabError(problem: ProblemDetails): {
  readonly status: number;
  readonly code: CollabErrorCode;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
} {
  const { details = {}, detail: message } = problem;
  const status = statusOf(problem);
  const code = byStatus[status] ?? (status < 500 ? 'VALIDATION_ERROR' : 'INTERNAL_ERROR');
  return { status, code, message, details };
}

export const collabErrors: ErrorShape = {
  schema: Type.Object({
    error: Type.Object({
      code: Type.Enum([...codes]),
      message: Type.String(),
      details: Type.Record(Type.String(), Type.Unknown()),
    }),
  }),
  toResponse(problem) {
    const { status, ...error } = collabError(problem);
    const { rateLimit } = error.details;
    return { status, body: { error }, headers: rateLimitHeaders(rateLimit) };
  },
};

function statusOf({ status, details }: ProblemDetails): number {
  if (status !== 422) return status;
  return statusByReason[String(details?.['reason'])] ?? 409;
}

/** State of the message limit; successful responses contain it, too. */
export interface RateLimitState {
  readonly limit: number;
  readonly remaining: number;
  /** Time until the oldest counted message expires. */
  readonly resetSeconds: number;
}

export function rateLimitHeaders(state: unknown): Readonly<Record<string, string>> {
  if (typeof state !== 'object' || state === null) return {};
  const { limit, remaining, resetSeconds } = state as RateLimitState;
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(resetSeconds),
  };
}

/** For the OpenAPI document. */
export const rateLimitShown = {
  'X-RateLimit-Limit': 'Messages allowed per minute.',
  'X-RateLimit-Remaining': 'Messages left.',
  'X-RateLimit-Reset': 'Seconds until the limit frees up.',
};

/** A missing resource and a hidden resource get the same response. */
export function notFound(what: string): MillraceError {
  return new MillraceError('NOT_FOUND', `Unknown ${what}.`);
}

export function forbidden(message: string): MillraceError {
  return new MillraceError('NOT_ALLOWED', message);
}

export function invalid(field: string, message: string): MillraceError {
  return new MillraceError('REQUEST_INVALID', message, { details: { field } });
}
