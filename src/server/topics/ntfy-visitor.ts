// Identifies the visitor of a request by address, and by credentials in the header or the query.

import type { IncomingMessage } from 'node:http';
import type { NotifyUser } from '../../topics/users/access-rules.ts';
import type { NotifyUsers } from '../../topics/users/notify-users.ts';
import { ntfyError } from '../../topics/ntfy-problems.ts';
import { visitorOfAddress, type VisitorBook } from '../../topics/visitor-limits.ts';

export interface Visitor {
  readonly name: string;
  readonly user: NotifyUser | undefined;
  /** True: requests and messages do not count against limits. */
  readonly isExempt: boolean;
}

export interface VisitorOptions {
  readonly users: NotifyUsers;
  readonly visitors: VisitorBook;
  /** True: the address is the last one of `X-Forwarded-For`. */
  readonly isBehindProxy: boolean;
  readonly exemptHosts: readonly string[];
}

export async function visitorOf(
  request: IncomingMessage,
  query: URLSearchParams | undefined,
  { users, visitors, isBehindProxy, exemptHosts }: VisitorOptions,
): Promise<Visitor> {
  const address = addressOf(request, isBehindProxy);
  const name = visitorOfAddress(address);
  const isExempt = exemptHosts.includes(name.slice('ip:'.length));
  const authorization = authorizationOf(request, query);
  const hasCredentials = authorization !== undefined && /^(?:basic|bearer) /i.test(authorization);
  if (!hasCredentials) return { name, user: undefined, isExempt };
  visitors.authAttempt(name);
  try {
    return { name, user: await users.authenticate(authorization), isExempt };
  } catch (error) {
    visitors.authFailure(name);
    throw error;
  }
}

function addressOf(request: IncomingMessage, isBehindProxy: boolean): string {
  const own = request.socket.remoteAddress ?? '0.0.0.0';
  if (!isBehindProxy) return own;
  const forwarded = String(request.headers['x-forwarded-for'] ?? '')
    .split(',')
    .at(-1)
    ?.trim();
  return forwarded === undefined || !/^[\da-f.:]{2,45}$/i.test(forwarded) ? own : forwarded;
}

function authorizationOf(
  request: IncomingMessage,
  query: URLSearchParams | undefined,
): string | undefined {
  const inQuery = query?.get('authorization') || query?.get('auth');
  if (!inQuery) return request.headers.authorization?.trim();
  // ntfy answers 500 here, although the client sent a malformed value.
  if (!/^[-_A-Za-z0-9]+$/.test(inQuery)) throw ntfyError('unauthorized');
  return Buffer.from(inQuery, 'base64url').toString('utf8').trim();
}
