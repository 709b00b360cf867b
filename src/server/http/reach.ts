// From where clients reach a server, as its settings show.

import type { Duplex } from 'node:stream';
import { MillraceError } from '../../foundation/error.ts';

export interface Reach {
  /** The address that the server listens on. Default: 127.0.0.1. */
  readonly host?: string | undefined;
  /** The names by which clients reach the server, in addition to those of this machine. */
  readonly hosts?: readonly string[] | undefined;
  readonly behindProxy?: boolean | undefined;
  /** The URL of the server for clients. */
  readonly baseUrl?: string | undefined;
}

/**
 * Whether the address is reachable only from the same machine.
 *
 * @example
 * import { isLoopback } from 'millrace/server/kurrent';
 *
 * console.log(isLoopback('127.0.0.1'), isLoopback('0.0.0.0')); // true false
 */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** Whether other machines can reach the server: at its address, or through a proxy. */
export function isReachableFromElsewhere({ host = '127.0.0.1', ...reach }: Reach): boolean {
  return !isLoopback(host) || reach.behindProxy === true || !namesOf(reach).every(isLoopback);
}

/**
 * The `Host` headers that the server accepts, `*` for all. A web page can let its own name resolve to a loopback
 * address, and then call a server there as if it were the page's own server; the header has the page's name.
 */
export function acceptedHosts({ host = '127.0.0.1', ...reach }: Reach): readonly string[] {
  const names = namesOf(reach);
  // The proxy may pass any name, and callers without credentials have no access.
  const isOpen = !isLoopback(host) || (reach.behindProxy === true && names.length === 0);
  return isOpen ? ['*'] : names;
}

export function acceptsHost(hosts: readonly string[], header: string | undefined): boolean {
  // Browsers always send the header.
  if (header === undefined || hosts.includes('*')) return true;
  const name = nameOf(header);
  return isLoopback(name) || hosts.includes(name);
}

function namesOf({ hosts = [], baseUrl }: Omit<Reach, 'host'>): readonly string[] {
  const own = baseUrl === undefined ? [] : [nameOf(new URL(baseUrl).host)];
  return [...hosts.map(nameOf), ...own];
}

/** The name in lower case, without port, brackets and final dot. */
function nameOf(host: string): string {
  const [, address, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d*)?$/.exec(host) ?? [];
  return (address ?? name).toLowerCase().replace(/\.$/, '');
}

export function unknownHost(header: string | undefined): MillraceError {
  return new MillraceError('HOST_UNKNOWN', `unknown host '${header ?? ''}'`, {
    details: { field: 'host' },
  });
}

/** Refuses a WebSocket for an unknown host. */
export function rejectUpgrade(socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  socket.end('HTTP/1.1 421 Misdirected Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}
