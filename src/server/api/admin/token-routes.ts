// Tokens over HTTP: create, list and revoke. Only the response to the creation contains the secret.

import { Type } from '../../../contracts/type.ts';
import { tokenScopes } from '../../../platform/tokens/scopes.ts';
import { tokenLimits, tokenState, type Token } from '../../../platform/tokens/token.ts';
import { returns, routesOf } from '../api-context.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import {
  actorName,
  audited,
  closed,
  globalList,
  pageOf,
  text,
  time,
  timeOf,
  type AdminContext,
} from './admin-context.ts';

const { get, post } = routesOf('admin: tokens', 'admin');

const optional = Type.Optional(Type.String());
const scopes = Type.Array(Type.Enum([...tokenScopes]), { minItems: 1, maxItems: 10 });
const token = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    state: Type.Enum(['live', 'expired', 'revoked']),
    scopes,
    tenant: Type.Optional(Type.String({ description: 'Absent: all tenants.' })),
    createdAt: Type.String(),
    createdBy: optional,
    expiresAt: optional,
    revokedAt: optional,
    revokedBy: optional,
  },
  { title: 'Token' },
);

export function tokenRoutes(context: AdminContext): readonly Route[] {
  const { tokens } = context.platform;
  const shown = (each: Token) => ({ ...each, state: tokenState(each, Date.now()) });

  return [
    globalList({
      ...get,
      path: '/admin/tokens',
      summary: 'All tokens and their states, without secrets',
      responses: { 200: returns('All tokens, oldest first', pageOf(token)) },
      list: async () => (await tokens.list()).map(shown),
    }),
    route({
      ...post,
      path: '/admin/tokens',
      summary: 'Creates a token',
      isGlobal: true,
      description: 'The secret is not stored: only this response contains it.',
      body: closed({
        name: text(tokenLimits.nameCharsMax, "Lower-case letters, digits, '.', '_' and '-'."),
        scopes,
        tenant: Type.Optional(text(100, 'Absent: all tenants.')),
        expiresAt: Type.Optional(time),
      }),
      responses: {
        201: returns('Created', closed({ token, secret: Type.String() })),
        409: { description: 'A token with this name exists' },
      },
      handle: (request) => {
        const { expiresAt, ...fields } = request.body;
        const what = { action: 'token.create', target: fields.name };
        return audited(context, request, what, async () => {
          const created = await tokens.create({
            ...fields,
            by: actorName(request),
            ...(expiresAt === undefined
              ? {}
              : { expiresAt: timeOf('expiresAt', expiresAt).toISOString() }),
          });
          return { status: 201, body: { token: shown(created.token), secret: created.secret } };
        });
      },
    }),
    route({
      ...post,
      path: '/admin/tokens/{token}/revoke',
      summary: 'Revokes a token and closes the connections that use it',
      isGlobal: true,
      params: closed({ token: text(100, 'The name or id of the token.') }),
      responses: { 200: returns('The token', token) },
      handle: (request) => {
        const { token: nameOrId } = request.params;
        const what = { action: 'token.revoke', target: nameOrId };
        return audited(context, request, what, async () => {
          return { body: shown(await tokens.revoke(nameOrId, { by: actorName(request) })) };
        });
      },
    }),
  ];
}
