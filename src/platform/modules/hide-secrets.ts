// Fields of payloads and documents that a module marks as secret: servers never send their values to clients.

import type { RecordedEvent } from '../../store/recorded-event.ts';
import type { ModuleBook } from './platform-module.ts';

/** Stands for the value of a secret field. */
const hiddenValue = '[secret]';

/** The header with the exact bytes of an event of a gRPC client, which would contain the secret. */
const bytesHeader = '$kurrent';

export interface SecretHider {
  readonly event: <Event extends Pick<RecordedEvent, 'headers' | 'payload' | 'type'>>(
    event: Event,
  ) => Event;
  /** A document, or the payload of an event, of this aggregate. */
  readonly value: <Value>(aggregate: string, value: Value) => Value;
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
  const value = <Value>(aggregate: string, given: Value): Value => {
    const fields = secrets.get(aggregate);
    if (fields === undefined || typeof given !== 'object' || given === null) return given;
    const hidden = fields.filter((field) => Object.hasOwn(given, field));
    if (hidden.length === 0) return given;
    return { ...given, ...Object.fromEntries(hidden.map((field) => [field, hiddenValue])) };
  };
  return {
    value,
    event(event) {
      if (secrets.size === 0) return event;
      const payload = value(event.type.slice(0, event.type.indexOf('.')), event.payload);
      if (payload === event.payload) return event;
      const { [bytesHeader]: _bytes, ...headers } = event.headers ?? {};
      return { ...event, payload, headers };
    },
  };
}
