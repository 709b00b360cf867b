// The version of a read model that a command line names, as the store knows it: its code may be gone.

import { MillraceError } from '../foundation/error.ts';
import type { ProjectionStore } from '../projections/projection-host.ts';
import type { ProjectionVersion } from '../projections/switch-projection.ts';
import { usage } from './command.ts';

export async function namedVersion(
  store: ProjectionStore,
  command: string,
  positionals: readonly string[],
): Promise<ProjectionVersion> {
  const [name] = positionals;
  if (name === undefined || positionals.length > 1) {
    throw usage(`${command} takes one projection, such as sub:banking:accounts:v2`);
  }
  const versions = (await store.readModelVersions?.list()) ?? [];
  const known = versions.find(({ projection }) => projection === name);
  if (known === undefined) {
    throw new MillraceError('PROJECTION_UNKNOWN', `'${name}' was never started on this store`, {
      details: { name },
    });
  }
  const [bc = '', aggregate = ''] = known.family.split('.');
  return { name, readModel: { bc, aggregate, version: known.version } };
}
