// The deployment over HTTP: which engine has which role.

import { Type } from '../../../contracts/type.ts';
import { roleReport } from '../../../platform/engines/role-report.ts';
import { route, type Route } from '../../../platform/modules/route.ts';
import { checkGlobal, returns, routesOf } from '../api-context.ts';
import { closed, type AdminContext } from './admin-context.ts';

const optional = (description: string) => Type.Optional(Type.String({ description }));
const system = closed({
  roles: Type.Array(
    Type.Object(
      {
        role: Type.String(),
        title: Type.String(),
        engine: optional('Absent: the role is off, because no configured engine has it.'),
        url: optional('Without secrets.'),
        survives: optional('What an acknowledged write survives.'),
        sharedBy: optional('Which processes see the same data.'),
        warning: optional('Why this role needs a configured engine.'),
      },
      { title: 'Role' },
    ),
  ),
});

export function systemRoutes({ platform }: AdminContext): readonly Route[] {
  return [
    route({
      ...routesOf('admin: system', 'read').get,
      path: '/admin/system',
      summary: 'The engine of each role, and what it promises',
      responses: { 200: returns('The deployment', system) },
      async handle(request) {
        checkGlobal(request);
        return { body: { roles: roleReport(platform.engines.roles) } };
      },
    }),
  ];
}
