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
  return checkRoles(list.split(',').map((name) => name.trim()));
}

export function checkRoles(names: readonly string[]): readonly PlatformRole[] {
  const list = platformRoles.join(', ');
  if (names.length === 0) throw invalid(`roles must name at least one of ${list}`);
  return names.map((name) => {
    const role = platformRoles.find((each) => each === name);
    if (role !== undefined) return role;
    const near = closest(name, platformRoles);
    const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
    throw invalid(`unknown role '${name}'; known: ${list}.${hint}`);
  });
}

function invalid(message: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, { details: { field: 'roles' } });
}
