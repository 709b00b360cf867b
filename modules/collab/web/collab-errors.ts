// Errors in the words of the chat's API: `{ error: { code, message, details } }`.

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

/** Of rules that forbid something: which of them say that there is nothing, or not for this one. */
const refusals: Readonly<Record<string, number>> = {
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

/** What goes wrong, in the API's own words; pure. */
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
  answer(problem) {
    const { status, ...error } = collabError(problem);
    const { rateLimit } = error.details;
    return { status, body: { error }, headers: rateLimitHeaders(rateLimit) };
  },
};

function statusOf({ status, details }: ProblemDetails): number {
  if (status !== 422) return status;
  return refusals[String(details?.['reason'])] ?? 409;
}

/** As the limiter tells it; in answers that went well, too. */
export interface RateLimitState {
  readonly limit: number;
  readonly remaining: number;
  /** Until there is more. */
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

/** For the reference. */
export const rateLimitShown = {
  'X-RateLimit-Limit': 'Messages in any minute.',
  'X-RateLimit-Remaining': 'How many of them are left.',
  'X-RateLimit-Reset': 'Seconds until there are more.',
};

/** The same for what is not there and for what somebody may not know of. */
export function notFound(what: string): MillraceError {
  return new MillraceError('NOT_FOUND', `there is no such ${what}`);
}

export function forbidden(message: string): MillraceError {
  return new MillraceError('NOT_ALLOWED', message);
}

export function invalid(field: string, message: string): MillraceError {
  return new MillraceError('REQUEST_INVALID', message, { details: { field } });
}
