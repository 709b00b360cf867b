// The version of a read model that somebody names, as the store knows it: its code may be gone.

import { MillraceError } from '../foundation/error.ts';
import type { ReadModelVersions } from './read-model-versions.ts';
import type { ProjectionVersion } from './switch-projection.ts';

export async function namedVersion(
  versions: Pick<ReadModelVersions, 'list'> | undefined,
  name: string,
): Promise<ProjectionVersion> {
  const known = (await versions?.list())?.find(({ projection }) => projection === name);
  if (known === undefined) {
    throw new MillraceError('PROJECTION_UNKNOWN', `'${name}' was never started on this store`, {
      details: { name },
    });
  }
  const [bc = '', aggregate = ''] = known.family.split('.');
  return { name, readModel: { bc, aggregate, version: known.version } };
}
