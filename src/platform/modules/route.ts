// A route: name, access, inputs and outputs. The same definition validates requests and generates the OpenAPI document.

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
  /** Fires when the client disconnects, the credentials expire or are revoked, or the server stops. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** The address of the peer, independent of headers. */
  readonly address: string;
  /** For responses that can be large. */
  readonly memory: ReaderMemory;
}

/** The memory of a response until its client has read it, limited per caller and per process. */
export interface ReaderMemory {
  /** Runs the work when there is memory for a page. */
  readonly load: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /**
   * Loads a list by small reads, until the page has `limit` items or is large. A read that returns fewer items than its
   * limit ends the page.
   */
  readonly page: <Item>(
    bound: PageBound,
    read: (part: PartBound) => Promise<ListPage<Item>>,
  ) => Promise<ListPage<Item>>;
  /** Sets the size of what the client has not read yet. A client that reads nothing while others need memory is disconnected. */
  hold(bytes: number): void;
}

export interface PageBound {
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface PartBound extends PageBound {
  /** The read ends with the item that reaches this size. */
  readonly bytesMax: number;
}

export interface ListPage<Item> {
  readonly items: readonly Item[];
  /** Of the next page; undefined: this is the last page. */
  readonly cursor: string | undefined;
}

export interface JsonResponse {
  /** Default: 200, or 204 without a body. */
  readonly status?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

/** A JSON response whose text is complete. */
export interface TextResponse extends Pick<JsonResponse, 'headers' | 'status'> {
  readonly json: string;
}

/** Each chunk is written when it is produced, at the pace of the client. */
export interface StreamResponse extends Pick<JsonResponse, 'headers' | 'status'> {
  readonly contentType: string;
  readonly stream: AsyncIterable<string | Uint8Array>;
}

export type RouteResponse = JsonResponse | StreamResponse | TextResponse;

export interface ResponseInfo {
  readonly description: string;
  readonly schema?: TSchema | undefined;
  /** Default: `application/json`. */
  readonly contentType?: string | undefined;
  /** Response headers in the reference: descriptions by name. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** RFC 9457: code, problem and remedy. */
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

/** The error format of a route whose clients do not expect problem details. */
export interface ErrorShape {
  /** The schema of the body, for the reference. */
  readonly schema: TSchema;
  /** Pure: converts the problem details. Default status: that of the problem. */
  toResponse(problem: ProblemDetails): JsonResponse;
}

/** A route with any inputs, as the server uses it. */
export interface Route {
  readonly method: Method;
  /** Parameters are in braces: `/admin/dlq/{id}/replay`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string | undefined;
  readonly tag: string;
  readonly access: Access;
  /** Of data that all tenants share: needs credentials for all tenants. */
  readonly isGlobal?: boolean | undefined;
  readonly params?: TObject | undefined;
  /** Numbers and booleans of the query string are parsed. */
  readonly query?: TObject | undefined;
  readonly body?: TSchema | undefined;
  /** Request headers in the reference: descriptions by name. */
  readonly headersShown?: Readonly<Record<string, string>> | undefined;
  /** The schema of the body in the reference, if it is more specific than the validation. */
  readonly bodyShown?: TSchema | undefined;
  /** No request timeout, because the response may be slow or endless. */
  readonly isLong?: boolean | undefined;
  readonly responses: Readonly<Record<number, ResponseInfo>>;
  /** Default: problem details. */
  readonly errors?: ErrorShape | undefined;
  handle(request: ApiRequest): Promise<RouteResponse>;
}

/**
 * Defines a route; its handler gets the types of its schemas.
 *
 * @example
 * import { route } from 'millrace/platform';
 * import { Type } from 'millrace/contracts';
 *
 * const hello = route({
 *   method: 'GET', path: '/hello/{name}', summary: 'Says hello', tag: 'demo', access: 'anonymous',
 *   params: Type.Object({ name: Type.String() }),
 *   responses: { 200: { description: 'A greeting', schema: Type.Object({ text: Type.String() }) } },
 *   handle: async ({ params }) => ({ body: { text: `Hello, ${params.name}` } }),
 * });
 */
export function route<
  Params extends TObject = TObject,
  Query extends TObject = TObject,
  Body extends TSchema = TSchema,
>(
  definition: Omit<Route, 'body' | 'handle' | 'params' | 'query'> & {
    readonly params?: Params | undefined;
    readonly query?: Query | undefined;
    readonly body?: Body | undefined;
    handle(
      request: ApiRequest<Static<Params>, Static<Query>, Static<Body>>,
    ): Promise<RouteResponse>;
  },
): Route {
  // The server validates the inputs with these schemas before it calls the handler.
  return definition;
}
