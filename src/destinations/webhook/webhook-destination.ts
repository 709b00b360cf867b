// The webhook: one signed POST, to where it may go, and what the answer means.

import type { DeliveryMessage } from '../../delivery/delivery-message.ts';
import type { DeliveryOutcome } from '../../delivery/delivery-outcome.ts';
import type { DeliveryContext, Destination } from '../../delivery/destination.ts';
import { outcomeOfAnswer } from '../../delivery/http-outcome.ts';
import { createHttpClient, outcomeOfFailure } from '../../delivery/http-post.ts';
import { systemClock, type Clock } from '../../foundation/clock.ts';
import { hasCode } from '../../foundation/error.ts';
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
import { encodeHeader, webhookContent, webhookId, type WebhookFormat } from './webhook-content.ts';
import { checkedUrl, wantsEvent, type WebhookEndpoint } from './webhook-endpoint.ts';
import { signingKey } from './webhook-key.ts';
import { signWebhook } from './webhook-signature.ts';

type FindEndpoint = (
  message: DeliveryMessage,
  signal: AbortSignal,
) => Promise<WebhookEndpoint | undefined>;

export interface WebhookOptions {
  /** One, or who finds it for a message; undefined: there is none (any more). */
  readonly endpoint: WebhookEndpoint | FindEndpoint;
  /** Time limit of one attempt, kept by `createDelivery`. Default: 5 s. */
  readonly timeoutMs?: number | undefined;
  /** Default: `standard`, the payload that Standard Webhooks recommends. */
  readonly format?: WebhookFormat;
  /** CloudEvents `source`. Default: `/<source stream>`. */
  readonly source?: string;
  /** Ranges that are allowed although they are private: `10.1.0.0/16`, `127.0.0.1/32`. */
  readonly allowAddresses?: readonly string[];
  /** Plain http too. Default: false. */
  readonly allowHttp?: boolean;
  /** Certificate authorities instead of those of the machine. */
  readonly ca?: string | readonly string[];
  /** Default: the machine's resolver. */
  readonly resolve?: HostResolver;
  /** Without it no endpoint is ever disabled. */
  readonly health?: EndpointHealthStore;
  readonly disable?: Partial<DisablePolicy>;
  /** Called by the one attempt that disabled it: tell its owner. */
  readonly onDisabled?: (endpoint: WebhookEndpoint, health: EndpointHealth) => void;
  readonly clock?: Clock;
  readonly observer?: Observer;
}

export const webhookLimits = { timeoutMs: 5_000 } as const;

/**
 * A destination that posts to webhooks, signed as Standard Webhooks says. Close it with the process.
 *
 * @example
 * import { createDelivery } from 'millrace/delivery';
 * import { webhookDestination } from 'millrace/adapters/webhook';
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
  const guard = createAddressGuard({
    allow: options.allowAddresses ?? [],
    ...(options.resolve === undefined ? {} : { resolve: options.resolve }),
  });
  const client = createHttpClient({
    lookup: guard.lookup,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
  const find: FindEndpoint = typeof endpoint === 'function' ? endpoint : async () => endpoint;
  // One that is known now is checked now.
  if (typeof endpoint !== 'function') check(endpoint);

  function check({ url: text, secrets }: WebhookEndpoint): URL {
    const url = checkedUrl(text, { allowHttp });
    guard.checkHost(url.hostname);
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
    const posted = await client.post({
      url,
      signal,
      body: content.body,
      headers: {
        'user-agent': 'millrace-webhook',
        ...lowerCased(target.headers),
        ...tracing(message),
        ...content.headers,
        'idempotency-key': encodeHeader(idempotencyKey),
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(timestampMs / 1_000)),
        'webhook-signature': signWebhook({ id, timestampMs, body: content.body }, target.secrets),
      },
    });
    const { status, body, headers } = posted;
    return outcomeOfAnswer({
      status,
      body,
      retryAfter: headers['retry-after'],
      nowMs: clock.now(),
    });
  }

  async function noteHealth(target: WebhookEndpoint, outcome: DeliveryOutcome): Promise<void> {
    if (health === undefined) return;
    const result = resultOf(outcome);
    const before = await health.read(target.id);
    // Most of the time nothing fails and nothing is written.
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
    if (target === undefined) return { kind: 'dead', error: 'there is no such endpoint' };
    if (!wantsEvent(target.eventTypes, message.eventType)) {
      return { kind: 'sent', skipped: `the endpoint does not want ${message.eventType}` };
    }
    const disabled = (await health?.read(target.id))?.disabled;
    if (disabled !== undefined) {
      return { kind: 'dead', error: `the endpoint is disabled: ${disabled.reason}` };
    }
    context.signal.throwIfAborted();
    const outcome = await post(target, message, context).catch(outcomeOfFailure);
    const { signal } = context;
    // A stop of the process says nothing about the endpoint.
    if (signal.aborted && !hasCode(signal.reason, 'HANDLER_TIMEOUT')) return outcome;
    const noted = noteHealth(target, outcome).catch((err: unknown) => {
      observer.log?.warn({ endpoint: target.id, err }, 'webhook endpoint health not written');
    });
    // After the time limit, only an outcome that is reported at once counts.
    if (!signal.aborted) await noted;
    return outcome;
  };
  return Object.assign(send, {
    timeoutMs,
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  });
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

/** Who asks the sender about a webhook names these. */
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
