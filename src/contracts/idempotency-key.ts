// Idempotency keys, `<tenant>|<service>|<operation>|<naturalKey>`: commands with the same key take effect once.

import { checkLength, nameInvalid, nameLimits } from './identifier.ts';
import { checkTenant } from './tenant.ts';

export interface IdempotencyKeyParts {
  readonly tenant: string;
  readonly service: string;
  readonly operation: string;
  /** Identifies the intent; any string without control characters, `|` included. */
  readonly naturalKey: string;
}

const token = /^[A-Za-z0-9][A-Za-z0-9-]*$/;
// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
const control = /[\u0000-\u001f\u007f]/;

/**
 * Builds the key that makes a command safe to repeat.
 *
 * @example
 * import { buildIdempotencyKey } from 'millrace/contracts';
 *
 * buildIdempotencyKey({ tenant: 'core', service: 'notify', operation: 'sendSlack', naturalKey: 'maker-test1' });
 * // core|notify|sendSlack|maker-test1
 */
export function buildIdempotencyKey(parts: IdempotencyKeyParts): string {
  checkTenant(parts.tenant);
  checkToken('service', parts.service);
  checkToken('operation', parts.operation);
  if (parts.naturalKey === '' || control.test(parts.naturalKey)) {
    throw nameInvalid(
      'natural key',
      parts.naturalKey,
      'must not be empty or contain control characters',
    );
  }
  const key = `${parts.tenant}|${parts.service}|${parts.operation}|${parts.naturalKey}`;
  checkLength(key, nameLimits.keyCharsMax);
  return key;
}

/**
 * Parses an idempotency key; the natural key is the part after the third bar.
 *
 * @example
 * import { parseIdempotencyKey } from 'millrace/contracts';
 *
 * console.log(parseIdempotencyKey('core|notify|sendSlack|maker-test1').operation); // sendSlack
 */
export function parseIdempotencyKey(key: string): IdempotencyKeyParts {
  const [tenant = '', service = '', operation = '', ...rest] = key.split('|');
  const parts = { tenant, service, operation, naturalKey: rest.join('|') };
  buildIdempotencyKey(parts);
  return parts;
}

function checkToken(kind: string, text: string): void {
  if (token.test(text)) return;
  throw nameInvalid(
    kind,
    text,
    'must start with a letter and contain letters, digits and "-" only',
  );
}

/**
 * The key by which the receiver detects duplicates: the header `idempotencyKey` if the mapper set one, else the id
 * of the event. The same for every attempt, and after the outbox was rebuilt from the store.
 *
 * @example
 * import { idempotencyKeyOf } from 'millrace/delivery';
 *
 * console.log(idempotencyKeyOf({ sourceEventId: '0199-a', headers: { idempotencyKey: 'invoice-7' } })); // invoice-7
 */
export function idempotencyKeyOf({
  sourceEventId,
  headers,
}: {
  readonly sourceEventId: string;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
}): string {
  const key = headers?.['idempotencyKey'];
  return typeof key === 'string' && key !== '' ? key : sourceEventId;
}
