// Errors as RFC 9457 problem details: code, problem and remedy, never a stack.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorCodes, type ErrorCode } from '../../foundation/error-codes.ts';
import type { MillraceError } from '../../foundation/error.ts';
import type { ErrorShape, ProblemDetails } from '../../platform/modules/route.ts';

/** Errors without a status here are reported as 500 without details. */
const statuses: Partial<Record<ErrorCode, number>> = {
  NOT_AUTHENTICATED: 401,
  NOT_ALLOWED: 403,
  TENANT_MISMATCH: 403,
  HOST_UNKNOWN: 421,
  NOT_FOUND: 404,
  TRACE_UNKNOWN: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  REQUEST_TOO_LARGE: 413,
  MEDIA_TYPE_UNKNOWN: 415,
  RATE_LIMITED: 429,
  REQUEST_INVALID: 400,
  NAME_INVALID: 400,
  TENANT_UNKNOWN: 400,
  TENANT_OVERLAP: 400,
  STREAM_AMBIGUOUS: 400,
  KEY_TOO_LONG: 400,
  KEY_HOLDS_PERSONAL_DATA: 400,
  ENVELOPE_INVALID: 400,
  PAYLOAD_INVALID: 400,
  PAYLOAD_TOO_LARGE: 413,
  PAYLOAD_NOT_JSON: 400,
  APPEND_INVALID: 400,
  POSITION_INVALID: 400,
  FILTER_INVALID: 400,
  CURSOR_INVALID: 400,
  OUTBOX_INVALID: 400,
  TOKEN_INVALID: 400,
  TASK_INVALID: 400,
  NOT_SUPPORTED: 400,
  VERSION_CONFLICT: 409,
  COMMAND_KEY_REUSED: 409,
  TOKEN_EXISTS: 409,
  SUBSCRIPTION_RUNNING: 409,
  DEAD_LETTER_CLOSED: 409,
  PROJECTION_BUSY: 409,
  SAGA_NOT_PARKED: 409,
  BULK_COUNT_CHANGED: 409,
  PROJECTION_INVALID: 409,
  LEASE_LOST: 409,
  TASK_STALE: 409,
  TASK_CONFLICT: 409,
  TASK_TYPE_DRAINING: 409,
  STREAM_DELETED: 410,
  SUBJECT_FORGOTTEN: 410,
  COMMAND_REJECTED: 422,
  COMMAND_AMBIGUOUS: 400,
  COMMAND_UNKNOWN: 404,
  EVENT_UNKNOWN: 400,
  READ_MODEL_INVALID: 400,
  READ_MODEL_UNKNOWN: 404,
  SUBSCRIPTION_UNKNOWN: 404,
  DEAD_LETTER_UNKNOWN: 404,
  PROJECTION_UNKNOWN: 404,
  SAGA_UNKNOWN: 404,
  OUTBOX_UNKNOWN: 404,
  TOKEN_UNKNOWN: 404,
  TASK_UNKNOWN: 404,
  TASK_TYPE_UNKNOWN: 404,
  DRIVER_MISSING: 501,
  AGGREGATE_BUSY: 503,
  STORE_UNAVAILABLE: 503,
  READ_MODEL_REBUILDING: 503,
  STORE_CLOSED: 503,
  SERVER_UNAVAILABLE: 503,
  IDENTITY_UNAVAILABLE: 503,
  LIFECYCLE_STOPPED: 503,
  TASKS_UNAVAILABLE: 503,
  TASKS_CLOSED: 503,
  BUS_UNAVAILABLE: 503,
  BUS_INVALID: 400,
  BUS_GROUP_CONFLICT: 409,
  ABORTED: 503,
  WAIT_TIMEOUT: 504,
  TASK_TIMEOUT: 504,
};

export function statusOf(error: unknown): number {
  return isOurs(error) ? (statuses[error.code] ?? 500) : 500;
}

export function problemOf(error: unknown, requestId: string): ProblemDetails {
  const status = statusOf(error);
  if (status === 500 || !isOurs(error)) {
    return {
      type: 'about:blank',
      title: 'Internal error',
      status: 500,
      code: 'INTERNAL',
      detail: 'Internal error. Search the log for this request id.',
      remedy: errorCodes.INTERNAL.remedy,
      retryable: true,
      requestId,
    };
  }
  const { code, message, retryable, details } = error;
  const info = errorCodes[code];
  return {
    type: 'about:blank',
    title: info.meaning,
    status,
    code,
    detail: message,
    remedy: info.remedy,
    retryable,
    ...(Object.keys(details).length === 0 ? {} : { details }),
    requestId,
  };
}

function isOurs(error: unknown): error is MillraceError {
  return error instanceof Error && error.name === 'MillraceError' && 'code' in error;
}

/** Writes an error, in the shape of the route if it has one. */
export function sendProblem(
  request: IncomingMessage,
  response: ServerResponse,
  {
    error,
    requestId,
    shape,
  }: {
    readonly error: unknown;
    readonly requestId: string;
    readonly shape: ErrorShape | undefined;
  },
): void {
  const status = statusOf(error);
  // The response has started: closing the connection shows the client that it is incomplete.
  if (response.headersSent || response.destroyed) return void response.destroy();
  const problem = problemOf(error, requestId);
  const retryAfter = problem.details?.['retryAfterSeconds'];
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  if (Array.isArray(problem.details?.['allow'])) {
    response.setHeader('allow', problem.details['allow'].join(', '));
  }
  if (typeof retryAfter === 'number') response.setHeader('retry-after', String(retryAfter));
  // Unread data would be parsed as the next request.
  if (!request.complete) response.setHeader('connection', 'close');
  const shaped = shape?.toResponse(problem);
  for (const [name, value] of Object.entries(shaped?.headers ?? {})) {
    response.setHeader(name, value);
  }
  const text = JSON.stringify(shaped === undefined ? problem : shaped.body);
  response
    .writeHead(shaped?.status ?? status, {
      'content-type': shaped === undefined ? 'application/problem+json' : 'application/json',
      'content-length': Buffer.byteLength(text),
    })
    .end(request.method === 'HEAD' ? undefined : text);
}
