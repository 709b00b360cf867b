// Finds the program of a server, or names the package to install.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { MillraceError } from '../../foundation/error.ts';

/** Options of all servers that run as a program. */
export interface ProgramOptions {
  /** Searches the programs here instead of on PATH and in the usual folders. */
  readonly programFolders?: readonly string[] | undefined;
}

export interface Program {
  readonly name: string;
  readonly debianPackage: string;
  readonly folders: readonly string[];
}

/** The full path of the program; throws `SERVER_UNAVAILABLE` with the package to install. */
export function findProgram(program: Program): string {
  const path = program.folders
    .map((folder) => join(folder, program.name))
    .find((candidate) => isExecutable(candidate));
  if (path !== undefined) return path;
  throw new MillraceError(
    'SERVER_UNAVAILABLE',
    `${program.name} is not installed: apt-get install ${program.debianPackage}`,
    { retryable: false, details: { program: program.name, folders: program.folders } },
  );
}

/** PATH, and folders of Debian and Homebrew that are missing from some users' PATH. */
export function usualFolders(): readonly string[] {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [...path, '/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin'];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
