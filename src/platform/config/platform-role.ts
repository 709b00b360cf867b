// What a process does of all that there is to do.

import { closest } from '../../contracts/lint/closest.ts';
import { MillraceError } from '../../foundation/error.ts';

/** What a process does; together they are the product, apart they scale. */
export type PlatformRole = 'api' | 'subscriptions' | 'dispatcher' | 'workers' | 'sweepers';

/**
 * All of them.
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

/** `api,subscriptions`: told by its name when it is none of ours. */
export function rolesOf(list: string): readonly PlatformRole[] {
  const names = list.split(',').map((name) => name.trim());
  return names.map((name) => {
    const role = platformRoles.find((each) => each === name);
    if (role !== undefined) return role;
    const near = closest(name, platformRoles);
    const hint = near === undefined ? '' : ` Did you mean '${near}'?`;
    const message = `'${name}' is none of ${platformRoles.join(', ')}.${hint}`;
    throw new MillraceError('CONFIG_INVALID', message, { details: { field: 'roles' } });
  });
}
