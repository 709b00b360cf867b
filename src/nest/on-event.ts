// `@OnEvent`: methods that handle events, and the subscriptions that run them.

import { isDeepStrictEqual } from 'node:util';
import type { EventDefinition } from '../contracts/define-event.ts';
import { type EventType, parseEventType } from '../contracts/event-type.ts';
import { kebabCase } from '../contracts/identifier.ts';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import { MillraceError, hasCode } from '../foundation/error.ts';
import { isForgotten } from '../store/erasure.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import { Terminal } from '../foundation/handler-outcome.ts';
import type {
  Handler,
  HandlerContext,
  SubscriptionDefinition,
} from '../subscriptions/subscription.ts';
import {
  type EventMark,
  type MarkedMethod,
  type MethodDecoratorOf,
  eventDecorator,
  streamPrefixOf,
  uniquePrefixes,
} from './method-marks.ts';

/** A subscription shared by methods; their event types are its filter. */
export type HandlerSubscription = Omit<
  SubscriptionDefinition,
  'batchHandler' | 'batchSize' | 'filter' | 'handler'
>;

export interface OnEventOptions {
  /**
   * `sub:<service>:<name>:v<n>`, alone or with settings. The checkpoint is stored under this name: a new name starts
   * from the first event. Default: `sub:<service of the module>:<class in kebab-case>:v1`.
   */
  readonly subscription?: string | HandlerSubscription | undefined;
  /**
   * Reads the events of this category, such as `crm.account.v1`. Default: the category of the event type in the bounded
   * context of the module (`bc`).
   */
  readonly category?: string | undefined;
}

export type OnEventMark = OnEventOptions & EventMark;

/** The context may be typed with the transaction of the store. The result is awaited. */
export type EventMethod<Payload> = (
  event: RecordedEvent<Payload>,
  context: HandlerContext<never>,
) => unknown;

export const onEventKey = Symbol.for('millrace:on-event');

/**
 * The method handles each event of this type until it succeeds once: in order per aggregate, with retries, a dead
 * letter after the last one, and a checkpoint. Methods of one class share a subscription. With a definition of
 * `defineEvent`, its schema validates the payload and TypeScript checks the parameter of the method.
 *
 * @example
 * import { Injectable } from '@nestjs/common';
 * import { OnEvent } from 'millrace/nest';
 * import type { RecordedEvent } from 'millrace/store';
 * import type { HandlerContext } from 'millrace/subscriptions';
 *
 * @Injectable()
 * export class PaymentMailer {
 *   @OnEvent('payment.completed.v1', { subscription: 'sub:shop:payment-mailer:v1' })
 *   async onCompleted(
 *     event: RecordedEvent<{ readonly amount: number }>,
 *     { idempotencyKey, signal }: HandlerContext<unknown>,
 *   ): Promise<void> {
 *     await fetch('https://mail.example/send', {
 *       method: 'POST',
 *       headers: { 'idempotency-key': idempotencyKey },
 *       body: JSON.stringify({ amount: event.payload.amount }),
 *       signal,
 *     });
 *   }
 * }
 */
export function OnEvent<const Type extends string>(
  type: EventType<Type>,
  options?: OnEventOptions,
): MethodDecoratorOf<EventMethod<never>>;
export function OnEvent<Type extends string, Input, Output>(
  definition: EventDefinition<Type, Input, Output>,
  options?: OnEventOptions,
): MethodDecoratorOf<EventMethod<Output>>;
export function OnEvent(
  event: Parameters<typeof eventDecorator>[1],
  options?: OnEventOptions,
): MethodDecoratorOf<EventMethod<never>> {
  return eventDecorator(onEventKey, event, options);
}

/** A method, and the prefix of the streams with its events. */
interface EventMethodOf {
  readonly method: MarkedMethod<OnEventMark>;
  readonly streamPrefix: string;
}

type EventMethods = Map<string, EventMethodOf>;

interface Group {
  readonly provider: object;
  readonly className: string;
  readonly byType: EventMethods;
  settings: HandlerSubscription | undefined;
}

export interface HandlerNames {
  readonly service?: string | undefined;
  readonly bc?: string | undefined;
}

/** Returns one subscription per name; the error of an invalid declaration names its method. */
export function handlerSubscriptions(
  methods: readonly MarkedMethod<OnEventMark>[],
  { service, bc }: HandlerNames,
): readonly SubscriptionDefinition[] {
  const groups = new Map<string, Group>();
  for (const method of methods) {
    const { mark, where, provider, className } = method;
    const { type } = mark;
    parseEventType(type);
    const settings = typeof mark.subscription === 'object' ? mark.subscription : undefined;
    const name = settings?.name ?? nameOf(method, service);
    const group = groups.get(name) ?? { provider, className, byType: new Map(), settings };
    groups.set(name, group);
    if (group.provider !== provider) {
      throw invalid(
        `${where} and ${group.className} both have the subscription '${name}': rename one of them, or provide the class in one module only`,
        { name, where },
      );
    }
    const other = group.byType.get(type);
    if (other !== undefined) {
      throw invalid(
        `${where} and ${other.method.where} both handle ${type} in '${name}': a failure of one would repeat both, so give one of them a separate subscription`,
        { name, where },
      );
    }
    if (settings !== undefined && !isDeepStrictEqual(settings, group.settings ?? settings)) {
      throw invalid(`${where} has other settings for '${name}' than an earlier method`, {
        name,
        where,
      });
    }
    group.settings ??= settings;
    group.byType.set(type, { method, streamPrefix: streamPrefixOf(method, bc) });
  }
  return [...groups].map(([name, { byType, settings }]) => ({
    ...settings,
    name,
    filter: {
      types: [...byType.keys()],
      streamPrefixes: uniquePrefixes([...byType.values()]),
    },
    handler: handlerOf(byType),
  }));
}

function nameOf(
  { mark, where, className }: MarkedMethod<OnEventMark>,
  service: string | undefined,
): string {
  if (typeof mark.subscription === 'string') return mark.subscription;
  if (service !== undefined) {
    return buildSubscriptionName(service, kebabCase(className), 1);
  }
  throw invalid(
    `${where} has no subscription name: set one, or set the service of the module to derive it`,
    { where },
  );
}

function handlerOf(byType: EventMethods): Handler<unknown> {
  return async (event, context) => {
    const { method, streamPrefix } = byType.get(event.type) ?? {};
    // The filter has the streams of all methods.
    if (method === undefined || !event.stream.startsWith(streamPrefix ?? '')) return;
    const { parse } = method.mark;
    if (parse === undefined) {
      await method.call(event, context);
      return;
    }
    // The payload of a forgotten person is erased.
    if (isForgotten(event.payload)) return;
    await method.call({ ...event, payload: parseOrTerminate(parse, event.payload) }, context);
  };
}

/** An invalid payload is terminal, because a retry cannot fix it. */
export function parseOrTerminate(parse: (payload: unknown) => unknown, payload: unknown): unknown {
  try {
    return parse(payload);
  } catch (error) {
    if (!hasCode(error, 'PAYLOAD_INVALID')) throw error;
    throw new Terminal(error.message, { cause: error });
  }
}

function invalid(reason: string, details: Readonly<Record<string, unknown>>): MillraceError {
  return new MillraceError('SUBSCRIPTION_INVALID', reason, { details });
}
