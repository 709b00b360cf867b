// What an engine says of a group that is not what its caller takes it for.

import { MillraceError } from '../foundation/error.ts';

/**
 * There is no group of this name, or not any more.
 *
 * @example
 * import { unknownGroup } from 'millrace/bus';
 *
 * console.log(unknownGroup('monitors').code); // BUS_GROUP_UNKNOWN
 */
export function unknownGroup(group: string): MillraceError {
  return new MillraceError('BUS_GROUP_UNKNOWN', `there is no group '${group}'`, {
    details: { group },
  });
}

/**
 * The group is there, over another subject.
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
    `the group '${group}' reads '${there}', not '${wanted}'`,
    { details: { group, there, wanted } },
  );
}
