// The audit log over HTTP: actor, action, target, address and outcome.

import { Type } from '../../../contracts/type.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import { returns, routesOf } from '../api-context.ts';
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
    action: Type.String({ description: 'For example dead-letter.replay.' }),
    target: Type.String(),
    actor: Type.Object({
      kind: Type.String(),
      name: Type.String(),
      tenant: optional,
      address: optional,
    }),
    requestId: optional,
    outcome: Type.Enum(['done', 'failed', 'unknown'], {
      description: 'unknown: still running, or the process was killed.',
    }),
    endedAt: optional,
    error: Type.Optional(Type.String({ description: 'The error code.' })),
  },
  { title: 'AuditEntry' },
);

export function auditRoutes({ audit }: AdminContext): readonly Route[] {
  return [
    route({
      ...routesOf('admin: audit', 'admin').get,
      path: '/admin/audit',
      summary: 'Admin actions, newest first',
      description:
        'A page with a cursor may be short or empty: each request searches a limited part of the log. Admins of a tenant see the actions of admins of that tenant.',
      query: closed({
        actor: Type.Optional(text(400, 'The name of the actor.')),
        action: Type.Optional(text(100)),
        since: Type.Optional(time),
        until: Type.Optional(time),
        ...pageQuery,
      }),
      responses: { 200: returns('A page', pageOf(entry)) },
      async handle({ query, principal }) {
        const { actor, action, since, until, limit, cursor } = query;
        const page = await audit.list(
          {
            actor,
            action,
            tenant: principal?.tenant,
            sinceMs: timeOf('since', since)?.getTime(),
            untilMs: timeOf('until', until)?.getTime(),
          },
          { limit, cursor },
        );
        return { body: { items: page.items, cursor: page.cursor } };
      },
    }),
  ];
}
