// Delivers messages to webhooks: one signed POST to a permitted address, and the outcome of its response.

import { http } from '../../foundation/http.ts';
import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { DeliveryContext, Destination } from '../../delivery/destination.ts';
import { outcomeOfResponse } from '../../delivery/http-outcome.ts';
import { maskedHeaders } from '../../delivery/masked-headers.ts';
import { createHttpClient, outcomeOfFailure } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { silentObserver, type Observer } from '../../foundation/observer.ts';
import { createAddressGuard, type HostResolver } from './address-guard.ts';
import {
  decideHealth,
  disableLimits,
  type DisablePolicy,
  type EndpointHealth,
  type EndpointHealthStore,
  type EndpointResult,
} from '../../delivery/endpoint-health.ts';
import { encodeHeader, webhookContent, webhookId, type WebhookFormat } from './content.ts';
import { signingKey } from './key.ts';
import { signWebhook } from './signature.ts';

export interface WebhookEndpoint {
  /** The key of the endpoint's health record. */
  readonly id: string;
  readonly url: string;
  /** Secrets `whsec_…` or `whsk_…`: the current one first, and during a rotation also the previous one. */
  readonly secrets: readonly [string, ...string[]];
  /** Subscribed event types: `payment.completed.v1`, `payment.*` or `*`. Default: all. */
  readonly eventTypes?: readonly string[] | undefined;
  /** Additional headers; those of the standard take precedence. Headers of the connection and `Host` are rejected. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

type FindEndpoint = (
  message: DeliveryMessage,
  signal: AbortSignal,
) => Promise<WebhookEndpoint | undefined>;

export interface WebhookOptions {
  /** The endpoint, or a function that returns the endpoint of a message, or undefined if there is none. */
  readonly endpoint: WebhookEndpoint | FindEndpoint;
  /** Time limit of one attempt, enforced by `createDelivery`. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
  /** Default: `standard`, the payload that Standard Webhooks recommends. */
  readonly format?: WebhookFormat | undefined;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string | undefined;
  /** Private ranges that are allowed: `10.1.0.0/16`, `127.0.0.1/32`. */
  readonly allowAddresses?: readonly string[] | undefined;
  /** Permits plain http. Default: false. */
  readonly allowHttp?: boolean | undefined;
  /** Certificate authorities instead of those of the machine. */
  readonly ca?: string | readonly string[] | undefined;
  /** Default: the resolver of the system. */
  readonly resolve?: HostResolver | undefined;
  /** The store for the health of endpoints. Without a store, no endpoint is disabled. */
  readonly health?: EndpointHealthStore | undefined;
  readonly disable?: Partial<DisablePolicy> | undefined;
  /** Called once, by the attempt that disabled the endpoint: notify its owner. */
  readonly onDisabled?: ((endpoint: WebhookEndpoint, health: EndpointHealth) => void) | undefined;
  readonly clock?: Clock | undefined;
  readonly observer?: Observer | undefined;
}

export const webhookLimits = { timeoutMs: 5_000 } as const;

/**
 * A destination that posts to webhooks, signed by Standard Webhooks. Dispose it when the process stops.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { webhookDestination } from 'millrace/destinations/webhook';
 *
 * await using webhook = webhookDestination({
 *   endpoint: {
 *     id: 'acme',
 *     url: 'https://acme.example/hooks',
 *     secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
 *     eventTypes: ['payment.*'],
 *   },
 * });
 * const { deliver } = createDelivery({ destinations: { 'webhook:acme': webhook } });
 */
export function webhookDestination(options: WebhookOptions): Destination & AsyncDisposable {
  const { clock = systemClock, observer = silentObserver, health, endpoint } = options;
  const { timeoutMs = webhookLimits.timeoutMs, format = 'standard', allowHttp = false } = options;
  const policy: DisablePolicy = { ...disableLimits, ...options.disable };
  const guard = createAddressGuard({ allow: options.allowAddresses, resolve: options.resolve });
  const client = createHttpClient({ lookup: guard.lookup, ca: options.ca });
  const find: FindEndpoint = typeof endpoint === 'function' ? endpoint : async () => endpoint;
  // A fixed endpoint is validated at once.
  if (typeof endpoint !== 'function') check(endpoint);

  function check({ url: text, secrets, headers = {} }: WebhookEndpoint): URL {
    const url = checkedUrl(text, { allowHttp });
    guard.checkHost(url.hostname);
    for (const [name, value] of Object.entries(headers)) checkHeader(name, value, url.host);
    for (const secret of secrets) signingKey(secret);
    return url;
  }

  async function post(
    target: WebhookEndpoint,
    message: DeliveryMessage,
    { idempotencyKey, signal }: DeliveryContext,
  ): Promise<DeliveryOutcome> {
    const url = check(target);
    const content = webhookContent(message, { format, source: options.source });
    const id = webhookId(idempotencyKey);
    const timestampMs = clock.now();
    const headers = {
      'user-agent': 'millrace-webhook',
      ...lowerCased(target.headers),
      ...tracing(message),
      ...content.headers,
      'idempotency-key': encodeHeader(idempotencyKey),
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(timestampMs / 1_000)),
      'webhook-signature': signWebhook({ id, timestampMs, body: content.body }, target.secrets),
    };
    const outcome = await client
      .post({ url, signal, body: content.body, headers })
      .then(
        ({ status, body, headers: { 'retry-after': retryAfter } }) =>
          outcomeOfResponse({ status, body, retryAfter, nowMs: clock.now() }),
        outcomeOfFailure,
      );
    return { ...outcome, request: { headers: maskedHeaders(headers) } };
  }

  async function recordHealth(target: WebhookEndpoint, outcome: DeliveryOutcome): Promise<void> {
    if (health === undefined) return;
    const result = resultOf(outcome);
    const before = await health.read(target.id);
    // In the usual case neither this nor an earlier attempt failed, so nothing is written.
    if (result === 'worked' && (before === undefined || before.failures === 0)) return;
    let isNew = false;
    const nowMs = clock.now();
    const after = await health.update(target.id, (current) => {
      const next = decideHealth(current, result, { policy, nowMs });
      isNew = next.disabled !== undefined && current.disabled === undefined;
      return next;
    });
    if (!isNew) return;
    observer.log?.warn(
      { endpoint: target.id, reason: after.disabled?.reason },
      'webhook endpoint disabled',
    );
    options.onDisabled?.(target, after);
  }

  const send: Destination = async (message, context) => {
    const target = await find(message, context.signal);
    if (target === undefined) return { kind: 'dead', error: 'the endpoint does not exist' };
    if (!wantsEvent(target.eventTypes, message.eventType)) {
      return { kind: 'sent', skipped: `the endpoint does not subscribe to ${message.eventType}` };
    }
    const disabled = (await health?.read(target.id))?.disabled;
    if (disabled !== undefined) {
      return { kind: 'dead', error: `the endpoint is disabled: ${disabled.reason}` };
    }
    context.signal.throwIfAborted();
    const outcome = await post(target, message, context).catch(outcomeOfFailure);
    const { signal } = context;
    // An abort at shutdown says nothing about the endpoint.
    if (signal.aborted && !hasCode(signal.reason, 'HANDLER_TIMEOUT')) return outcome;
    const recorded = recordHealth(target, outcome).catch((err: unknown) => {
      observer.log?.warn({ endpoint: target.id, err }, 'could not record webhook endpoint health');
    });
    // After the time limit, the outcome must be returned at once.
    if (!signal.aborted) await recorded;
    return outcome;
  };
  return Object.assign(send, {
    timeoutMs,
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  });
}

/**
 * Whether a pattern matches the event type: the whole type, a prefix before `*`, or `*`.
 *
 * @example
 * import { wantsEvent } from 'millrace/destinations/webhook';
 *
 * console.log(wantsEvent(['payment.*'], 'payment.completed.v1')); // true
 */
export function wantsEvent(patterns: readonly string[] | undefined, eventType: string): boolean {
  if (patterns === undefined) return true;
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? eventType.startsWith(pattern.slice(0, -1)) : pattern === eventType,
  );
}

/** Throws `CONFIG_INVALID`; the error shows only the host, because paths can contain secrets. */
export function checkedUrl(text: string, { allowHttp }: { readonly allowHttp: boolean }): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined)
    throw new MillraceError('CONFIG_INVALID', 'invalid webhook URL: use https://host/path');
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) {
    throw new MillraceError(
      'CONFIG_INVALID',
      `the webhook at '${url.host}' must use https, or set allowHttp`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new MillraceError(
      'CONFIG_INVALID',
      `the URL of the webhook at '${url.host}' contains a password; use headers instead`,
    );
  }
  return url;
}

/** The headers of HTTP itself: they say where a request ends, who receives it and what happens to the connection. */
const headersOfHttp: ReadonlySet<string> = new Set(
  `connection content-length expect host http2-settings keep-alive proxy-authenticate proxy-authorization
   proxy-connection te trailer transfer-encoding upgrade`.split(/\s+/),
);

function checkHeader(name: string, value: string, host: string): void {
  const invalid = (reason: string, cause?: unknown): MillraceError =>
    new MillraceError(
      'CONFIG_INVALID',
      `the header ${JSON.stringify(name)} of the webhook at '${host}' ${reason}`,
      { cause },
    );
  try {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
  } catch (error) {
    throw invalid(
      'is not a valid header: use letters, digits, "-" and printable characters',
      error,
    );
  }
  if (headersOfHttp.has(name.toLowerCase())) throw invalid('is set by HTTP: remove it');
}

function resultOf(outcome: DeliveryOutcome): EndpointResult {
  if (outcome.kind === 'sent') return 'worked';
  return outcome.answer?.status === 410 ? 'gone' : 'failed';
}

function lowerCased(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]),
  );
}

/** Receivers quote these ids when they ask the sender about a webhook. */
function tracing({ correlationId, tenantId, headers }: DeliveryMessage): Record<string, string> {
  const { traceparent, tracestate } = headers ?? {};
  const isTraced = typeof traceparent === 'string' && /^[\da-f-]{55}$/.test(traceparent);
  return {
    ...(correlationId === undefined ? {} : { 'x-correlation-id': encodeHeader(correlationId) }),
    ...(tenantId === undefined ? {} : { 'x-tenant-id': encodeHeader(tenantId) }),
    ...(isTraced ? { traceparent } : {}),
    ...(isTraced && typeof tracestate === 'string' && /^[\x20-\x7e]{1,512}$/.test(tracestate)
      ? { tracestate }
      : {}),
  };
}
