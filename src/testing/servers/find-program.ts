// Where a server's program lies, and what to install when it lies nowhere.

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { MillraceError } from '../../foundation/error.ts';

/** What all servers that are programs of their own take. */
export interface ProgramOptions {
  /** Looks for the server's programs here, instead of on PATH and in the usual folders. */
  readonly programFolders?: readonly string[] | undefined;
}

export interface Program {
  readonly name: string;
  readonly debianPackage: string;
  readonly folders: readonly string[];
}

/** The program's full path; `SERVER_UNAVAILABLE` with the package to install when there is none. */
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

/** PATH, and the folders that Debian and Homebrew install servers to but some users' PATH lacks. */
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
