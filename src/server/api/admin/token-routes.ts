// Tokens over HTTP: a secret is in the answer that made it, and never again.

import { Type } from '../../../contracts/type.ts';
import { tokenLimits, tokenScopes, tokenState, type Token } from '../../../platform/tokens/token.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import {
  askedBy,
  audited,
  checkGlobal,
  closed,
  pageOf,
  text,
  time,
  timeOf,
  type AdminContext,
} from './admin-context.ts';

const tag = 'admin: tokens';
const access = 'admin';

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
    route({
      method: 'GET',
      path: '/admin/tokens',
      summary: 'All tokens and what became of them; never a secret',
      tag,
      access,
      answers: { 200: { description: 'Oldest first', schema: pageOf(token) } },
      async handle(request) {
        checkGlobal(request);
        return { body: { items: (await tokens.list()).map(shown) } };
      },
    }),
    route({
      method: 'POST',
      path: '/admin/tokens',
      summary: 'Makes a token',
      description: 'The secret is not kept: this answer is the only one that has it.',
      tag,
      access,
      body: closed({
        name: text(tokenLimits.nameCharsMax, "Lower-case letters, digits, '.', '_' and '-'."),
        scopes,
        tenant: Type.Optional(text(100, 'Absent: all tenants.')),
        expiresAt: Type.Optional(time),
      }),
      answers: {
        201: { description: 'Made', schema: closed({ token, secret: Type.String() }) },
        409: { description: 'There is one of that name' },
      },
      handle: (request) => {
        const { expiresAt, ...wanted } = request.body;
        const what = { action: 'token.create', target: wanted.name };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          const made = await tokens.create({
            ...wanted,
            by: askedBy(request),
            ...(expiresAt === undefined
              ? {}
              : { expiresAt: timeOf('expiresAt', expiresAt).toISOString() }),
          });
          return { status: 201, body: { token: shown(made.token), secret: made.secret } };
        });
      },
    }),
    route({
      method: 'POST',
      path: '/admin/tokens/{token}/revoke',
      summary: 'Ends a token, also for those who are connected with it',
      tag,
      access,
      params: closed({ token: text(100, 'Its name or id.') }),
      answers: { 200: { description: 'The token', schema: token } },
      handle: (request) => {
        const { token: nameOrId } = request.params;
        const what = { action: 'token.revoke', target: nameOrId };
        return audited(context, request, what, async () => {
          checkGlobal(request);
          return { body: shown(await tokens.revoke(nameOrId, { by: askedBy(request) })) };
        });
      },
    }),
  ];
}
