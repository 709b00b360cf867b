// The roles of a process.

import { closest } from '../../foundation/closest.ts';
import { MillraceError } from '../../foundation/error.ts';

/** The parts that a process runs; one process may have all roles, or each may scale separately. */
export type PlatformRole = 'api' | 'subscriptions' | 'dispatcher' | 'workers' | 'sweepers';

/**
 * All roles.
 *
 * @example
 * import { createPlatform, platformRoles } from 'millrace/platform';
 *
 * await using worker = await createPlatform({ roles: platformRoles.filter((role) => role !== 'api') });
 */
export const platformRoles: readonly PlatformRole[] = [
  'api',
  'subscriptions',
  'dispatcher',
  'workers',
  'sweepers',
];

/** Parses `api,subscriptions`; throws for an unknown role. */
export function rolesOf(list: string): readonly PlatformRole[] {
  const names = list.split(',').map((name) => name.trim());
  return names.map((name) => {
    const role = platformRoles.find((each) => each === name);
    if (role !== undefined) return role;
    const near = closest(name, platformRoles);
    const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
    const message = `unknown role '${name}'; known: ${platformRoles.join(', ')}.${hint}`;
    throw new MillraceError('CONFIG_INVALID', message, { details: { field: 'roles' } });
  });
}
