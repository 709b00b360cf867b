// A route: what it is called, who may use it, what goes in and what comes out. The same definition
// checks requests and becomes the OpenAPI document.

import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../../foundation/error-codes.ts';
import type { Access, Principal } from './principal.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ApiRequest<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Absent on anonymous routes without credentials. */
  readonly principal: Principal | undefined;
  /** Fires when the client went away, the credentials ended, or the server stops. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** Where the request came from: the peer, whatever headers claim. */
  readonly address: string;
}

export interface JsonAnswer {
  /** Default: 200, or 204 without a body. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Written as it comes; the client's pace is respected. */
export interface StreamAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly stream: AsyncIterable<string | Uint8Array>;
}

export type Answer = JsonAnswer | StreamAnswer;

export interface AnswerInfo {
  readonly description: string;
  readonly schema?: TSchema;
  /** Default: `application/json`. */
  readonly contentType?: string;
  /** What the reference says of its headers: by name, what each tells. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** RFC 9457: our code, what is wrong, what to do. */
export interface ProblemDetails {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly remedy: string;
  readonly retryable: boolean;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly requestId: string;
}

/** How a route tells errors, where clients expect something else than problem details. */
export interface ErrorShape {
  /** Of the body, for the reference. */
  readonly schema: TSchema;
  /** Pure: from what would have been answered. Without a status: that of the problem. */
  answer(problem: ProblemDetails): JsonAnswer;
}

/** As the server takes it, whatever its inputs are. */
export interface Route {
  readonly method: Method;
  /** Names of parameters stand in braces: `/admin/dlq/{id}/replay`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  readonly access: Access;
  readonly params?: TObject;
  /** Of strings; numbers and booleans are read from them. */
  readonly query?: TObject;
  readonly body?: TSchema;
  /** What the reference says of headers that the handler reads: by name, what each does. */
  readonly headersShown?: Readonly<Record<string, string>>;
  /** What the reference says of the body, where it knows more than is checked here. */
  readonly bodyShown?: TSchema;
  /** An answer may be long in coming, or never end: no request timeout. */
  readonly isLong?: boolean;
  readonly answers: Readonly<Record<number, AnswerInfo>>;
  /** Default: problem details. */
  readonly errors?: ErrorShape;
  handle(request: ApiRequest): Promise<Answer>;
}

/**
 * Defines a route; what its handler gets has the types of its schemas.
 *
 * @example
 * import { route } from 'millrace/platform';
 * import { Type } from 'millrace/contracts';
 *
 * const hello = route({
 *   method: 'GET', path: '/hello/{name}', summary: 'Says hello', tag: 'demo', access: 'anonymous',
 *   params: Type.Object({ name: Type.String() }),
 *   answers: { 200: { description: 'A greeting', schema: Type.Object({ text: Type.String() }) } },
 *   handle: async ({ params }) => ({ body: { text: `Hello, ${params.name}` } }),
 * });
 */
export function route<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
>(
  definition: Omit<Route, 'body' | 'handle' | 'params' | 'query'> & {
    readonly params?: Params;
    readonly query?: Query;
    readonly body?: Body;
    handle(request: ApiRequest<Static<Params>, Static<Query>, Static<Body>>): Promise<Answer>;
  },
): Route {
  // The server checks the inputs by these very schemas before it calls.
  return definition;
}
