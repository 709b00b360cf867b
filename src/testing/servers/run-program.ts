// Runs programs that end by themselves, such as initdb.

import { execFile } from 'node:child_process';
import { aborted } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { notifyReaper } from './reaper.ts';

/** The user of a program, if it is not the current one. */
export interface ProgramUser {
  readonly uid: number;
  readonly gid: number;
}

export interface ProgramRun {
  readonly program: string;
  readonly args: readonly string[];
  /** The working directory and home of the program. */
  readonly folder: string;
  readonly user?: ProgramUser | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Runs the program and returns its output; throws `SERVER_UNAVAILABLE` if it failed. */
export function runProgram(run: ProgramRun): Promise<string> {
  const { program, args, folder, user, signal } = run;
  if (signal?.aborted === true) return Promise.reject(aborted(signal));
  return new Promise((resolve, reject) => {
    const settings = { cwd: folder, env: programEnvironment(folder), ...user };
    const child = execFile(program, args, settings, (error, stdout, stderr) => {
      signal?.removeEventListener('abort', onAbort);
      if (pid !== undefined) notifyReaper({ kind: 'process-ended', pid });
      if (error === null) resolve(stdout);
      else if (signal?.aborted === true) reject(aborted(signal));
      else {
        const message = `${program} failed: ${stderr.trim() || error.message}`;
        reject(new MillraceError('SERVER_UNAVAILABLE', message, { cause: error }));
      }
    });
    const { pid } = child;
    // Use SIGTERM: after SIGKILL, the shared memory of initdb's children would remain.
    if (pid !== undefined) notifyReaper({ kind: 'process', pid, signal: 'SIGTERM' });
    const onAbort = (): void => void child.kill('SIGTERM');
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** A minimal environment: a developer's PGHOST or PGOPTIONS must not reach a test server. */
export function programEnvironment(folder: string): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    LC_ALL: process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8',
  };
}
