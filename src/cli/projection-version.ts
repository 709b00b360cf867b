// The version of a read model that a command line names.

import { namedVersion } from '../projections/named-version.ts';
import type { ProjectionStore } from '../projections/projection-host.ts';
import type { ProjectionVersion } from '../projections/switch-projection.ts';
import { usage } from './command.ts';

export async function versionArgument(
  store: ProjectionStore,
  command: string,
  positionals: readonly string[],
): Promise<ProjectionVersion> {
  const [name] = positionals;
  if (name === undefined || positionals.length > 1) {
    throw usage(`${command} takes one projection, such as sub:banking:accounts:v2`);
  }
  return namedVersion(store.readModelVersions, name);
}
