// Errors of the engines about groups.

import { MillraceError } from '../foundation/error.ts';

/**
 * The group does not exist.
 *
 * @example
 * import { unknownGroup } from 'millrace/bus';
 *
 * console.log(unknownGroup('monitors').code); // BUS_GROUP_UNKNOWN
 */
export function unknownGroup(group: string): MillraceError {
  return new MillraceError('BUS_GROUP_UNKNOWN', `unknown group '${group}'`, {
    details: { group },
  });
}

/**
 * The group exists with another subject.
 *
 * @example
 * import { groupConflict } from 'millrace/bus';
 *
 * const error = groupConflict('monitors', { there: 'gbe.>', wanted: 'gbe.tasks.>' });
 * console.log(error.code); // BUS_GROUP_CONFLICT
 */
export function groupConflict(
  group: string,
  { there, wanted }: { readonly there: string; readonly wanted: string },
): MillraceError {
  return new MillraceError(
    'BUS_GROUP_CONFLICT',
    `the group '${group}' reads '${there}', not '${wanted}': use another group name, or delete the group`,
    { details: { group, there, wanted } },
  );
}
