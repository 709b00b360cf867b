// From methods with `@OnEvent` to the subscriptions that run them.

import { isDeepStrictEqual } from 'node:util';
import { parseEventType } from '../contracts/event-type.ts';
import { kebabCase } from '../contracts/identifier.ts';
import { buildSubscriptionName } from '../contracts/subscription-name.ts';
import { hasCode, MillraceError } from '../foundation/error.ts';
import { isForgotten } from '../store/erasure.ts';
import { Terminal } from '../subscriptions/handler-outcome.ts';
import type { Handler, SubscriptionDefinition } from '../subscriptions/subscription.ts';
import type { MarkedMethod } from './method-marks.ts';
import type { HandlerSubscription, OnEventMark } from './on-event.ts';

type EventMethods = Map<string, MarkedMethod<OnEventMark>>;

interface Group {
  readonly provider: object;
  readonly className: string;
  readonly byType: EventMethods;
  settings: HandlerSubscription | undefined;
}

/** One for each name; what cannot be meant is refused, with the place where it stands. */
export function handlerSubscriptions(
  methods: readonly MarkedMethod<OnEventMark>[],
  service: string | undefined,
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
        `${where} and ${group.className} both have the subscription '${name}': give one of them another name, or provide the class in one module only`,
        { name, where },
      );
    }
    const other = group.byType.get(type);
    if (other !== undefined) {
      throw invalid(
        `${where} and ${other.where} both handle ${type} in '${name}': when one fails both would be repeated, so give one of them a subscription of its own`,
        { name, where },
      );
    }
    if (settings !== undefined && !isDeepStrictEqual(settings, group.settings ?? settings)) {
      throw invalid(`${where} has other settings for '${name}' than those before it`, {
        name,
        where,
      });
    }
    group.settings ??= settings;
    group.byType.set(type, method);
  }
  return [...groups].map(([name, { byType, settings }]) => ({
    ...settings,
    name,
    filter: { types: [...byType.keys()] },
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
    `${where} names no subscription: give it one, or give the module a service to build the name from`,
    { where },
  );
}

function handlerOf(byType: EventMethods): Handler<unknown> {
  return async (event, context) => {
    const method = byType.get(event.type);
    if (method === undefined) return;
    const { parse } = method.mark;
    if (parse === undefined) {
      await method.call(event, context);
      return;
    }
    // The person was forgotten, and with it what the method needs.
    if (isForgotten(event.payload)) return;
    await method.call({ ...event, payload: parsed(parse, event.payload) }, context);
  };
}

/** A payload that does not fit today does not fit tomorrow. */
export function parsed(parse: (payload: unknown) => unknown, payload: unknown): unknown {
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
