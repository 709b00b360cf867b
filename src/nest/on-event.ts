// `@OnEvent`: a method that handles events of a type, as a part of a subscription.

import type { EventDefinition } from '../contracts/define-event.ts';
import type { EventType } from '../contracts/event-type.ts';
import type { RecordedEvent } from '../store/recorded-event.ts';
import type { HandlerContext, SubscriptionDefinition } from '../subscriptions/subscription.ts';
import { markMethod, type MethodDecoratorOf } from './method-marks.ts';

/** A subscription that methods share; what they handle is its filter. */
export type HandlerSubscription = Omit<
  SubscriptionDefinition,
  'batchHandler' | 'batchSize' | 'filter' | 'handler'
>;

export interface OnEventOptions {
  /**
   * `sub:<service>:<name>:v<n>`, by itself or with settings. The checkpoint is kept under it: a new name
   * begins at the start. Default: `sub:<service of the module>:<class in kebab-case>:v1`.
   */
  readonly subscription?: string | HandlerSubscription | undefined;
}

export interface OnEventMark extends OnEventOptions {
  readonly type: string;
  readonly parse: ((payload: unknown) => unknown) | undefined;
}

/** Its context may be typed with the transaction that the store has. What it returns is awaited. */
export type EventMethod<Payload> = (
  event: RecordedEvent<Payload>,
  context: HandlerContext<never>,
) => unknown;

export const onEventKey = Symbol.for('millrace:on-event');

/**
 * The method handles each event of this type once it succeeded: ordered per aggregate, retried,
 * then a dead letter, from a checkpoint. Methods of one class share a subscription. Given a definition of
 * `defineEvent`, the payload is checked by its schema and the method's parameter by TypeScript.
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
  event: string | Pick<EventDefinition<string, unknown, unknown>, 'parse' | 'type'>,
  options: OnEventOptions = {},
): MethodDecoratorOf<EventMethod<never>> {
  const mark: OnEventMark =
    typeof event === 'string'
      ? { ...options, type: event, parse: undefined }
      : { ...options, type: event.type, parse: (payload) => event.parse(payload) };
  return (_target, _name, descriptor) => markMethod(onEventKey, mark, descriptor);
}
