// One HTTP request without redirects, with a limit on how much of the response is read. Shared by the HTTP destinations.

import { request as httpsRequest, Agent as HttpsAgent } from 'node:https';
import type { ClientRequest, IncomingHttpHeaders } from 'node:http';
import type { LookupFunction } from 'node:net';
import { http } from '../foundation/http.ts';
import { MillraceError } from '../foundation/error.ts';
import { cleanText } from '../foundation/error-text.ts';
import { outcomeOfError, type Dead, type Retry } from './delivery-outcome.ts';

export interface HttpClientOptions {
  /** Resolves host names; the connection uses the returned address. */
  readonly lookup?: LookupFunction | undefined;
  /** Certificate authorities instead of those of the machine. */
  readonly ca?: string | readonly string[] | undefined;
}

interface HttpPost {
  readonly url: URL;
  readonly method?: 'POST' | 'GET';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly signal: AbortSignal;
  /** The rest of the response is not read. Default: `httpPostLimits.answerBytesMax`. */
  readonly answerBytesMax?: number | undefined;
  /**
   * Uses a new connection: a kept one may just be closing, and the request is only safe to repeat for a receiver
   * that detects duplicates by a key.
   */
  readonly fresh?: boolean | undefined;
}

interface HttpPosted {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface HttpClient extends AsyncDisposable {
  /** Resolves with a response of any status; rejects with `HttpFailure` if no response arrived. */
  post(post: HttpPost): Promise<HttpPosted>;
}

const httpPostLimits = {
  answerBytesMax: 2_048,
  idleMs: 15_000,
  freeSocketsMax: 32,
} as const;

/** No response arrived. `isOut`: the whole request was sent, so the receiver may have processed it. */
class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
  readonly isOut: boolean;

  constructor(cause: unknown, isOut: boolean) {
    super('no response', { cause });
    this.isOut = isOut;
  }
}

/** Connections are reused for requests to the same host. */
export function createHttpClient({ lookup, ca }: HttpClientOptions = {}): HttpClient {
  const common = {
    keepAlive: true,
    timeout: httpPostLimits.idleMs,
    maxFreeSockets: httpPostLimits.freeSocketsMax,
    ...(lookup === undefined ? {} : { lookup }),
  };
  const plainAgent = new http.Agent(common);
  const tlsAgent = new HttpsAgent({
    ...common,
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
  });
  let isClosed = false;

  function open(post: HttpPost): ClientRequest {
    const isTls = post.url.protocol === 'https:';
    const options = {
      method: post.method ?? 'POST',
      headers: { ...post.headers, 'content-length': Buffer.byteLength(post.body) },
      agent: post.fresh === true ? false : isTls ? tlsAgent : plainAgent,
    };
    try {
      return (isTls ? httpsRequest : http.request)(post.url, options);
    } catch (error) {
      // An invalid header or protocol: it would fail again.
      throw new MillraceError('CONFIG_INVALID', 'invalid HTTP request', { cause: error });
    }
  }

  return {
    async post(post) {
      if (isClosed) throw new MillraceError('STORE_CLOSED', 'the destination was closed');
      post.signal.throwIfAborted();
      const first = open(post);
      try {
        return await perform(first, post);
      } catch (error) {
        // The receiver closed a kept connection when it was reused: no byte was read.
        if (!(first.reusedSocket && isReset(error)) || post.signal.aborted) throw error;
        return perform(open(post), post);
      }
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      plainAgent.destroy();
      tlsAgent.destroy();
    },
  };
}

/** Resolves once the status has arrived, even if the body is incomplete. */
function perform(request: ClientRequest, post: HttpPost): Promise<HttpPosted> {
  const { signal, body, answerBytesMax = httpPostLimits.answerBytesMax } = post;
  return new Promise((resolve, reject) => {
    let isOut = false;
    let toPosted: (() => HttpPosted) | undefined;
    const onAbort = (): void => {
      const reason = abortReason(signal);
      request.destroy(reason);
      end(reason);
    };
    const end = (error?: unknown): void => {
      signal.removeEventListener('abort', onAbort);
      if (toPosted === undefined) reject(new HttpFailure(error, isOut));
      else resolve(toPosted());
    };
    signal.addEventListener('abort', onAbort, { once: true });
    request.once('finish', () => {
      isOut = request.socket?.connecting === false;
    });
    // Both listeners stay: a destroyed request can still emit errors.
    request.on('error', end);
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      toPosted = () => ({
        status: response.statusCode ?? 0,
        headers: response.headers,
        body: startOf(chunks, answerBytesMax),
      });
      response.on('data', (chunk: Buffer) => {
        if (size >= answerBytesMax) return;
        chunks.push(chunk);
        size += chunk.length;
        if (size < answerBytesMax) return;
        end();
        // Closes the connection, so that nothing more is received.
        if (!response.complete) response.destroy();
      });
      response.on('error', end);
      response.on('end', () => end());
      response.on('close', () => end());
    });
    request.end(body);
  });
}

function startOf(chunks: readonly Buffer[], bytesMax: number): string {
  return cleanText(Buffer.concat(chunks).subarray(0, bytesMax).toString('utf8'), bytesMax);
}

/** The outcome of a request without a response. */
export function outcomeOfFailure(error: unknown): Retry | Dead {
  if (!(error instanceof HttpFailure)) return outcomeOfError(error);
  const { cause, isOut } = error;
  if (cause instanceof MillraceError) {
    const outcome = outcomeOfError(cause);
    return outcome.kind === 'retry' && isOut ? { ...outcome, ambiguous: true } : outcome;
  }
  return { ...outcomeOfError(cause), kind: 'retry', ambiguous: isOut };
}

function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error('the request was cancelled');
}

function isReset(error: unknown): boolean {
  return (
    error instanceof HttpFailure &&
    error.cause instanceof Error &&
    'code' in error.cause &&
    (error.cause.code === 'ECONNRESET' || error.cause.code === 'EPIPE')
  );
}
