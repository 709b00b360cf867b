// The program's own part of the outbox: the module that `millrace outbox run` runs.

import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { MillraceError } from '../foundation/error.ts';
import type { OutboxDefinition, OutboxModule } from '../platform/define-outbox.ts';
import type { OutboxSettings } from '../platform/config/outbox-environment.ts';
import type { CommandContext } from './command.ts';

const names = ['outbox.config.ts', 'outbox.config.mts', 'outbox.config.js', 'outbox.config.mjs'];

export async function loadOutboxModule(
  { cwd }: Pick<CommandContext, 'cwd'>,
  given: string | undefined,
  settings: OutboxSettings,
): Promise<OutboxDefinition> {
  const path = findModule(cwd, given);
  const shown = relative(cwd, path);
  let definition: unknown;
  try {
    const exported = (await import(pathToFileURL(path).href)) as { readonly default?: unknown };
    const module = exported.default as OutboxModule | undefined;
    definition = typeof module === 'function' ? await module(settings) : module;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalid(`${shown} cannot be loaded: ${reason.split('\n')[0]}`, error);
  }
  if (isDefinition(definition)) return definition;
  throw invalid(`${shown} must export defineOutbox({ destinations, … }) as its default`);
}

function findModule(cwd: string, given: string | undefined): string {
  const paths = (given === undefined ? names : [given]).map((name) => resolve(cwd, name));
  const found = paths.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw invalid(
    given === undefined
      ? 'there is no outbox.config.ts here: write one with millrace new outbox, or name it with --config'
      : `there is no file '${given}'`,
  );
}

/** By its shape: the file may have brought another copy of this package. */
function isDefinition(value: unknown): value is OutboxDefinition {
  return (
    typeof value === 'object' &&
    value !== null &&
    'destinations' in value &&
    typeof value.destinations === 'object' &&
    value.destinations !== null &&
    (!('projectors' in value) || value.projectors === undefined || Array.isArray(value.projectors))
  );
}

function invalid(message: string, cause?: unknown): MillraceError {
  return new MillraceError('CONFIG_INVALID', message, {
    details: { field: 'config' },
    ...(cause === undefined ? {} : { cause }),
  });
}
