// Projections are code: commands that run them are told which files define them.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Projection } from '../projections/projection.ts';
import type { ReadModelStore } from '../projections/read-model-store.ts';
import { didYouMean, usage, type CommandContext } from './command.ts';

export const modulesOption = {
  modules: {
    type: 'string',
    multiple: true,
    value: 'file',
    summary: 'a file that exports projections, and `readModels` where they are not in the store',
  },
} as const;

export interface ProjectionModules {
  readonly projections: ReadonlyMap<string, Projection>;
  /** Undefined: the store's own. */
  readonly readModels: ReadModelStore | undefined;
}

export async function loadProjections(
  { cwd }: Pick<CommandContext, 'cwd'>,
  files: readonly string[] = [],
): Promise<ProjectionModules> {
  const projections = new Map<string, Projection>();
  let readModels: ReadModelStore | undefined;
  for (const file of files) {
    const exported = await importFile(resolve(cwd, file), file);
    for (const [name, value] of Object.entries(exported)) {
      if (name === 'readModels') readModels = value as ReadModelStore;
      for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
        if (isProjection(each)) projections.set(each.name, each);
      }
    }
  }
  return { projections, readModels };
}

export function chosenProjection({ projections }: ProjectionModules, name: string): Projection {
  const found = projections.get(name);
  if (found !== undefined) return found;
  throw usage(`no module exports the projection ${didYouMean(name, projections.keys())}`);
}

async function importFile(path: string, shown: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw usage(`--modules ${shown} cannot be loaded: ${reason.split('\n')[0]}`, { cause: error });
  }
}

/** By its shape: the file may have brought another copy of this package. */
function isProjection(value: unknown): value is Projection {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    typeof value.name === 'string' &&
    'readModel' in value &&
    'idOf' in value &&
    'apply' in value &&
    typeof value.apply === 'function'
  );
}
