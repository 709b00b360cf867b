// Sign-in, sign-out and permissions of the console.

import { Type } from '../../contracts/type.ts';
import type { IncomingHttpHeaders } from 'node:http';
import { MillraceError } from '../../foundation/error.ts';
import {
  mayCall,
  notAuthenticated,
  type Authenticate,
  type Principal,
} from '../../platform/modules/principal.ts';
import { route, type ApiRequest, type Route } from '../../platform/modules/route.ts';
import type { Tokens } from '../../platform/tokens/open-tokens.ts';
import type { SessionSource } from '../../platform/tokens/sessions.ts';
import type { AuthenticateSession } from '../http/respond.ts';
import { isSameOrigin, sessionCookie, sessionSecretOf } from '../http/session-cookie.ts';
import { audited, closed, text, type AdminContext } from '../api/admin/admin-context.ts';
import { returns } from '../api/api-context.ts';

const path = '/console/session';
const base = { tag: 'console', access: 'anonymous' } as const;
const csrf = { 'X-Millrace-App': '`console`: the session cookie counts only with this header.' };

const session = closed({
  session: Type.Union([
    Type.Null(),
    closed({
      name: Type.String({ description: 'The name of the token, or the subject of the JWT.' }),
      kind: Type.Enum(['token', 'jwt']),
      scopes: Type.Array(Type.String()),
      tenant: Type.Optional(Type.String({ description: 'Absent: all tenants.' })),
      expiresAt: Type.Optional(Type.String()),
      isMasked: Type.Optional(
        Type.Boolean({ description: 'The server masks payloads for this session.' }),
      ),
      may: Type.Array(Type.String(), {
        description: 'Routes that the scopes and the tenant allow.',
      }),
    }),
  ]),
});

export function sessionRoutes(
  context: AdminContext,
  {
    authenticate,
    routes,
  }: { readonly authenticate: Authenticate; readonly routes: () => readonly Route[] },
): readonly Route[] {
  const { tokens } = context.platform;

  const sourceOf = async (given: {
    readonly token?: string;
    readonly link?: string;
  }): Promise<SessionSource> => {
    if (given.link !== undefined) return { token: await tokens.useLink(given.link) };
    const secret = given.token?.trim() ?? '';
    const token = tokens.verify(secret)?.token;
    if (token !== undefined) return { token };
    const principal = await authenticate(`Bearer ${secret}`);
    if (principal === undefined) throw notAuthenticated('unknown or revoked token');
    const { kind, name, person, username, email, scopes, tenant, expiresAtMs } = principal;
    const actor = {
      kind,
      name,
      ...(person === undefined ? {} : { person }),
      ...(username === undefined ? {} : { username }),
      ...(email === undefined ? {} : { email }),
    };
    return { scopes, actor, expiresAtMs, ...(tenant === undefined ? {} : { tenant }) };
  };

  return [
    route({
      ...base,
      method: 'GET',
      path,
      summary: 'The session of the console and the routes that it may call',
      headersShown: csrf,
      responses: { 200: returns('The session; null without one', session) },
      handle: async ({ principal }) => ({
        body: { session: principal === undefined ? null : described(principal, routes()) },
      }),
    }),
    route({
      ...base,
      method: 'POST',
      path,
      summary: 'Opens a session of the console and sets its cookie',
      description:
        'A session has the scopes and the tenant of its credentials, ends with them, and after 12 hours. Only pages of this server may call this route.',
      body: closed({
        token: Type.Optional(text(10_000, 'An API key or a JWT.')),
        link: Type.Optional(text(200, 'The code of a one-time link.')),
      }),
      responses: {
        204: { description: 'Signed in', headers: { 'Set-Cookie': 'The session.' } },
        401: { description: 'The credentials are not valid' },
      },
      async handle(request) {
        const headers = request.headers as IncomingHttpHeaders;
        const { token, link } = request.body;
        if (!isSameOrigin(headers)) throw foreignOrigin();
        if ((token === undefined) === (link === undefined)) throw oneOfBoth();
        const source = await sourceOf(request.body);
        const opened = await signIn(context, request, source);
        const seconds = Math.floor((Date.parse(opened.expiresAt) - Date.now()) / 1_000);
        return {
          status: 204,
          headers: { 'set-cookie': sessionCookie(headers, opened.secret, seconds) },
        };
      },
    }),
    route({
      ...base,
      method: 'DELETE',
      path,
      summary: 'Ends the session of the console and removes its cookie',
      headersShown: csrf,
      responses: { 204: { description: 'Signed out' } },
      async handle(request) {
        const headers = request.headers as IncomingHttpHeaders;
        const secret = sessionSecretOf(headers);
        const { principal } = request;
        if (secret !== undefined && principal === undefined) await tokens.endSession(secret);
        else if (secret !== undefined) {
          const what = { action: 'console.sign-out', target: principal?.name ?? '' };
          await audited(context, request, what, () => tokens.endSession(secret));
        }
        return { status: 204, headers: { 'set-cookie': sessionCookie(headers, undefined) } };
      },
    }),
  ];
}

function signIn(context: AdminContext, request: ApiRequest, source: SessionSource) {
  const { tokens } = context.platform;
  const { kind, name } =
    'token' in source ? { kind: 'token' as const, name: source.token.name } : source.actor;
  const { scopes, tenant } = 'token' in source ? source.token : source;
  const principal = { kind, name, scopes, ...(tenant === undefined ? {} : { tenant }) };
  const what = { action: 'console.sign-in', target: name };
  return audited(context, { ...request, principal }, what, () => tokens.openSession(source));
}

/** The caller of a session acts with the rights of the credentials that opened it. */
export function sessionAuthenticator(
  tokens: Pick<Tokens, 'verifySession'>,
  { hasJwt }: { readonly hasJwt: boolean },
): AuthenticateSession {
  return (secret) => {
    const verified = tokens.verifySession(secret);
    if (verified?.token.actor === undefined) return undefined;
    const { token, ended } = verified;
    const { actor, scopes, tenant, expiresAt } = token;
    const isPerson = actor?.kind === 'jwt' || !hasJwt;
    return {
      ...actor,
      kind: actor?.kind ?? 'token',
      name: actor?.name ?? token.name,
      scopes,
      ended,
      ...(tenant === undefined ? {} : { tenant }),
      ...(expiresAt === undefined ? {} : { expiresAtMs: Date.parse(expiresAt) }),
      ...(isPerson ? {} : { person: `token:${actor?.name ?? ''}` }),
    };
  };
}

function described(principal: Principal, routes: readonly Route[]): unknown {
  const { name, kind, scopes, tenant, expiresAtMs, isMasked } = principal;
  const may = routes
    .filter(
      (each) =>
        each.access !== 'anonymous' &&
        !each.path.startsWith('/api/v1/admin/') &&
        mayCall(each, principal),
    )
    .map((each) => `${each.method} ${each.path}`);
  const expiresAt = expiresAtMs === undefined ? undefined : new Date(expiresAtMs).toISOString();
  return { name, kind, scopes, tenant, expiresAt, isMasked, may };
}

function foreignOrigin(): MillraceError {
  return new MillraceError('NOT_ALLOWED', 'only pages of this server may open a session', {
    details: { field: 'origin' },
  });
}

function oneOfBoth(): MillraceError {
  return new MillraceError('REQUEST_INVALID', 'send either token or link', {
    details: { field: 'token' },
  });
}
