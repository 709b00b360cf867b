// Fields of payloads and documents that a module marks as secret: servers never send their values to clients.

import { markHeader } from '../../contracts/event-form.ts';
import { jsonDepthMax } from '../../foundation/parse-json.ts';
import type { RecordedEvent } from '../../store/recorded-event.ts';
import { categoryOf } from '../../store/stream-category.ts';
import type { ModuleBook } from './platform-module.ts';
import type { Principal } from './principal.ts';

/** Stands for the value of a secret field. */
const hiddenValue = '[secret]';

/** Stands for each value of a payload that the caller must not see. */
const maskedText = '•••';

/** Keys, lists and null stay, except in values that are nested deeper than HTTP accepts. */
export function maskedValue(value: unknown, depth = 0): unknown {
  if (value === null || value === undefined) return value;
  if (typeof value !== 'object' || depth === jsonDepthMax) return maskedText;
  if (Array.isArray(value)) return value.map((each) => maskedValue(each, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, maskedValue(each, depth + 1)]),
  );
}

export interface SecretHider {
  readonly event: <Event extends Pick<RecordedEvent, 'headers' | 'payload' | 'stream' | 'type'>>(
    event: Event,
  ) => Event;
  /** The payload of an event of this stream. */
  readonly payload: <Value>(event: Pick<RecordedEvent, 'stream' | 'type'>, value: Value) => Value;
  /** A document of this read model. */
  readonly document: <Value>(
    readModel: { readonly bc: string; readonly aggregate: string },
    value: Value,
  ) => Value;
}

/**
 * Hides the secret fields of the loaded modules.
 *
 * @example
 * import { createPlatform, createSecretHider } from 'millrace/platform';
 *
 * await using platform = await createPlatform();
 * const hider = createSecretHider(platform.modules);
 * for await (const event of platform.engines.store.readAll()) console.log(hider.event(event).payload);
 */
export function createSecretHider({ secrets }: Pick<ModuleBook, 'secrets'>): SecretHider {
  const byName = new Map<string, string[]>();
  for (const [readModel, fields] of secrets.documents) {
    const name = readModel.slice(readModel.indexOf('.') + 1);
    byName.set(name, [...(byName.get(name) ?? []), ...fields]);
  }
  const hide = <Value>(fields: readonly string[] | undefined, given: Value): Value => {
    if (fields === undefined || typeof given !== 'object' || given === null) return given;
    const hidden = fields.filter((field) => Object.hasOwn(given, field));
    if (hidden.length === 0) return given;
    return { ...given, ...Object.fromEntries(hidden.map((field) => [field, hiddenValue])) };
  };
  /** In a stream of no aggregate the event type decides: a copied secret must not be shown. */
  const payloadOf: SecretHider['payload'] = ({ stream, type }, given) =>
    hide(
      secrets.events.get(categoryOf(stream) ?? '') ?? byName.get(type.slice(0, type.indexOf('.'))),
      given,
    );
  return {
    payload: payloadOf,
    document: ({ bc, aggregate }, given) =>
      hide(secrets.documents.get(`${bc}.${aggregate}`), given),
    event(event) {
      if (byName.size === 0) return event;
      const payload = payloadOf(event, event.payload);
      if (payload === event.payload) return event;
      return withPayload(event, payload);
    },
  };
}

/** Masks the payloads of all events, for callers that must not see payloads. */
export const payloadMasker: SecretHider = {
  payload: (_event, value) => maskedValue(value) as typeof value,
  document: (_readModel, value) => maskedValue(value) as typeof value,
  event: (event) => withPayload(event, maskedValue(event.payload)),
};

/** Hides the payloads of this caller, or the secret fields of modules. */
export function hiderFor(
  principal: Pick<Principal, 'isMasked'> | undefined,
  hider: SecretHider,
): SecretHider {
  return principal?.isMasked === true ? payloadMasker : hider;
}

function withPayload<Event extends Pick<RecordedEvent, 'headers' | 'payload'>>(
  event: Event,
  payload: unknown,
): Event {
  // The exact bytes of an event of a gRPC client would contain the value.
  const { [markHeader]: _bytes, ...headers } = event.headers ?? {};
  return { ...event, payload, headers };
}
