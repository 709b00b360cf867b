// Keys are seen by everyone who can see a dashboard: addresses of people do not belong in them.

import { MillraceError } from '../foundation/error.ts';

/**
 * Refuses ids that look like an e-mail address or a phone number. Ten to fifteen bare digits count
 * as a phone number: an order number of that length wants a prefix (`order-…`), which also says
 * what it is.
 */
export function checkNoPersonalData(id: string): void {
  const kind = personalDataKind(id);
  if (kind === undefined) return;
  throw new MillraceError(
    'KEY_HOLDS_PERSONAL_DATA',
    `an id that looks like ${kind} must not become part of a key: use an opaque id`,
    { details: { kind } },
  );
}

const email = /^[^@\s]+@[^@\s]+$/;
const phoneGroups = /^\+?\(?\d{1,4}\)?(?:[ .-]?\(?\d{2,4}\)?){2,5}$/;
const date = /^(?:19|20)\d\d[.-]?(?:0[1-9]|1[0-2])[.-]?(?:0[1-9]|[12]\d|3[01])(?:[.-]?\d{2,6})?$/;

export function personalDataKind(id: string): string | undefined {
  if (email.test(id)) return 'an e-mail address';
  if (!phoneGroups.test(id) || date.test(id)) return undefined;
  const digits = id.replace(/\D/g, '').length;
  const marked = id.startsWith('+') || id.startsWith('0');
  return digits <= 15 && digits >= (marked ? 7 : 10) ? 'a phone number' : undefined;
}
