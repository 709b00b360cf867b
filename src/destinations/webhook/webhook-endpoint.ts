// Where a webhook goes, and what is wanted there.

import { MillraceError } from '../../foundation/error.ts';

export interface WebhookEndpoint {
  /** Its health is kept under this. */
  readonly id: string;
  readonly url: string;
  /** `whsec_…` or `whsk_…`; the current one first, and during a rotation the one before it. */
  readonly secrets: readonly [string, ...string[]];
  /** `payment.completed.v1`, `payment.*` or `*`. Default: all. */
  readonly eventTypes?: readonly string[];
  /** Beside those of the standard, which win. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Whether one of the patterns fits the type: the whole type, what begins it before `*`, or `*`.
 *
 * @example
 * import { wantsEvent } from 'millrace/adapters/webhook';
 *
 * console.log(wantsEvent(['payment.*'], 'payment.completed.v1')); // true
 */
export function wantsEvent(patterns: readonly string[] | undefined, eventType: string): boolean {
  if (patterns === undefined) return true;
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? eventType.startsWith(pattern.slice(0, -1)) : pattern === eventType,
  );
}

/** Throws `CONFIG_INVALID`; tells nothing of the URL but its host, as paths can hold secrets. */
export function checkedUrl(text: string, { allowHttp }: { readonly allowHttp: boolean }): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new MillraceError('CONFIG_INVALID', 'the URL of a webhook is none');
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) {
    throw new MillraceError('CONFIG_INVALID', `the webhook at '${url.host}' must be https`);
  }
  if (url.username !== '' || url.password !== '') {
    throw new MillraceError(
      'CONFIG_INVALID',
      `the URL of the webhook at '${url.host}' holds a password; use headers`,
    );
  }
  return url;
}
