// Which engine has which role, as the banner, `millrace doctor` and `GET /admin/system` show it.

import { engineTable, roleTable, type RoleName } from './engine-table.ts';
import { redactUrl } from './engine-url.ts';
import type { ResolvedRole } from './resolve-roles.ts';

export interface RoleReport {
  readonly role: RoleName;
  readonly title: string;
  /** Undefined: the role is off, because no configured engine has it. */
  readonly engine?: string | undefined;
  /** Without secrets. */
  readonly url?: string | undefined;
  readonly survives?: string | undefined;
  readonly sharedBy?: string | undefined;
  readonly warning?: string | undefined;
}

export function roleReport(roles: readonly ResolvedRole[]): readonly RoleReport[] {
  return roles.map(({ role, target, warning }) => {
    const { title } = roleTable[role];
    if (target === undefined) return { role, title };
    const { survives, sharedBy, title: engine } = engineTable[target.engine];
    return { role, title, engine, url: redactUrl(target.connection), survives, sharedBy, warning };
  });
}
