// The cookie of a session: when it counts as credentials, and how it is set. A page of another origin can make a
// browser send the cookie, but neither the header nor the subprotocol of the console.

import type { IncomingHttpHeaders } from 'node:http';

type Headers = IncomingHttpHeaders;

/** The header that scripts of the console send with each request. */
const appHeader = 'x-millrace-app';
const appName = 'console';
/** The WebSocket subprotocol that scripts of the console offer, because they cannot set headers. */
const appProtocol = 'millrace.console';

/** The session of a request; undefined if the request has other credentials, or does not come from the console. */
export function sessionSecretOf(headers: Headers): string | undefined {
  const isOurs =
    headers.authorization === undefined && headers[appHeader] === appName && isSameOrigin(headers);
  return isOurs ? cookieOf(headers) : undefined;
}

/** The session of a WebSocket upgrade. */
export function socketSecretOf(headers: Headers): string | undefined {
  const offered = headers['sec-websocket-protocol']?.split(',').map((each) => each.trim());
  const isOurs =
    headers.authorization === undefined &&
    offered?.includes(appProtocol) === true &&
    isOwnOrigin(headers);
  return isOurs ? cookieOf(headers) : undefined;
}

/** Browsers say where a request comes from; those without fetch metadata send the origin with each change. */
export function isSameOrigin(headers: Headers): boolean {
  const site = headers['sec-fetch-site'];
  return site === undefined ? isOwnOrigin(headers) : site === 'same-origin';
}

/** Whether the page of the request was loaded from this server. */
export function isOwnOrigin({ origin, host }: Headers): boolean {
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
}

/** `secret` undefined: removes the cookie. */
export function sessionCookie(
  headers: Headers,
  secret: string | undefined,
  secondsMax = 0,
): string {
  const isTls = headers.origin?.startsWith('https:') === true;
  const name = isTls ? tlsName : plainName(headers);
  const value = `${name}=${secret ?? ''}; Path=/; Max-Age=${secondsMax}; HttpOnly; SameSite=Strict`;
  return isTls ? `${value}; Secure` : value;
}

/** Browsers accept this name only from the host itself, over TLS. */
const tlsName = '__Host-millrace-console';

/** Servers on one machine share the cookies of `localhost`, so the name contains the port. */
function plainName({ host = '' }: Headers): string {
  const [, port = '80'] = /:(\d+)$/.exec(host) ?? [];
  return `millrace-console-${port}`;
}

function cookieOf(headers: Headers): string | undefined {
  const cookies = new Map(
    (headers.cookie ?? '').split(';').map((each) => {
      const [name = '', value = ''] = each.split('=', 2);
      return [name.trim(), value.trim()];
    }),
  );
  return cookies.get(tlsName) ?? cookies.get(plainName(headers));
}
