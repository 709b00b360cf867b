// Idempotency keys, `<tenant>|<service>|<operation>|<naturalKey>`: one key, one intent, one effect.

import { checkLength, nameInvalid, nameLimits } from './identifier.ts';
import { checkTenant } from './tenant.ts';

export interface IdempotencyKeyParts {
  readonly tenant: string;
  readonly service: string;
  readonly operation: string;
  /** What makes the intent this one: anything but control characters; it may hold `|`. */
  readonly naturalKey: string;
}

const token = /^[A-Za-z][A-Za-z0-9-]*$/;
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const control = /[\u0000-\u001f\u007f]/;

/**
 * Builds the key that makes a command repeatable.
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
      'must not be empty or hold control characters',
    );
  }
  const key = `${parts.tenant}|${parts.service}|${parts.operation}|${parts.naturalKey}`;
  checkLength(key, nameLimits.keyCharsMax);
  return key;
}

/**
 * Takes an idempotency key apart; the natural key is everything behind the third bar.
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
  throw nameInvalid(kind, text, 'must start with a letter and hold letters, digits and "-" only');
}
