// The audit over HTTP: who did what, to what, from where, and what came of it.

import { Type } from '../../../contracts/type.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import {
  closed,
  pageOf,
  pageQuery,
  text,
  time,
  timeOf,
  type AdminContext,
} from './admin-context.ts';

const optional = Type.Optional(Type.String());
const entry = Type.Object(
  {
    id: Type.String(),
    at: Type.String(),
    action: Type.String({ description: 'As in dead-letter.replay.' }),
    target: Type.String(),
    actor: Type.Object({
      kind: Type.String(),
      name: Type.String(),
      tenant: optional,
      address: optional,
    }),
    requestId: optional,
    outcome: Type.Enum(['done', 'failed', 'unknown'], {
      description: 'unknown: under way, or its process died.',
    }),
    endedAt: optional,
    error: Type.Optional(Type.String({ description: 'The code of the error.' })),
  },
  { title: 'AuditEntry' },
);

export function auditRoutes({ audit }: AdminContext): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/admin/audit',
      summary: 'What administrators did, newest first',
      description:
        'A page may be short, or empty, and have a cursor: that far it looked. Administrators of a tenant see what those of that tenant did.',
      tag: 'admin: audit',
      access: 'admin',
      query: closed({
        actor: Type.Optional(text(400, 'A name.')),
        action: Type.Optional(text(100)),
        since: Type.Optional(time),
        until: Type.Optional(time),
        ...pageQuery,
      }),
      answers: { 200: { description: 'A page', schema: pageOf(entry) } },
      async handle({ query, principal }) {
        const { actor, action, since, until, limit, cursor } = query;
        const tenant = principal?.tenant;
        const page = await audit.list(
          {
            ...(actor === undefined ? {} : { actor }),
            ...(action === undefined ? {} : { action }),
            ...(tenant === undefined ? {} : { tenant }),
            ...(since === undefined ? {} : { sinceMs: timeOf('since', since).getTime() }),
            ...(until === undefined ? {} : { untilMs: timeOf('until', until).getTime() }),
          },
          {
            ...(limit === undefined ? {} : { limit }),
            ...(cursor === undefined ? {} : { cursor }),
          },
        );
        return {
          body: {
            items: page.entries,
            ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
          },
        };
      },
    }),
  ];
}
