// Matrix homeservers push through this gateway: a topic's address is the key that they push to.

import { refused } from '../../notify/ntfy-problems.ts';

/** Undefined: the key is of another server, and the homeserver is to forget it. */
export function pushTarget(
  body: Buffer,
  baseUrl: string,
): { readonly pushkey: string; readonly url: URL | undefined } {
  const pushkey = pushkeyOf(body);
  if (!pushkey.startsWith(`${baseUrl}/`) || !URL.canParse(pushkey)) {
    return { pushkey, url: undefined };
  }
  return { pushkey, url: new URL(pushkey) };
}

function pushkeyOf(body: Buffer): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString('utf8'));
  } catch {
    throw refused('matrixInvalid');
  }
  const { notification } = (parsed ?? {}) as { readonly notification?: unknown };
  const { devices } = (notification ?? {}) as { readonly devices?: unknown };
  const first: unknown = Array.isArray(devices) ? devices[0] : undefined;
  const { pushkey } = (first ?? {}) as { readonly pushkey?: unknown };
  if (typeof pushkey !== 'string' || pushkey === '') throw refused('matrixInvalid');
  return pushkey;
}
