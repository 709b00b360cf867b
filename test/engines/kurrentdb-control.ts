// Kills, starts and scavenges a given KurrentDB server through a command of its operator.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MillraceError } from '../../src/foundation/error.ts';
import type { KillableServer } from '../kurrent/recovery-cases.ts';

/** What the command does; it ends when that is done. */
type Verb = 'kill' | 'start' | 'scavenge';

export interface ServerControl {
  run(verb: Verb): Promise<void>;
}

const run = promisify(execFile);

/** The verb is the last argument of the command. */
export function controlOf(command: string): ServerControl {
  return {
    async run(verb) {
      try {
        await run('/bin/sh', ['-c', `${command} ${verb}`], { timeout: 120_000 });
      } catch (cause) {
        const message = `MILLRACE_TEST_KURRENTDB_CONTROL failed with the argument "${verb}"`;
        throw new MillraceError('SERVER_UNAVAILABLE', message, { cause });
      }
    },
  };
}

/** The shared server, which runs again when the case ends. */
export function killable(url: string, control: ServerControl): KillableServer {
  let isRunning = true;
  return {
    url,
    async kill() {
      isRunning = false;
      await control.run('kill');
    },
    async startAgain() {
      await control.run('start');
      isRunning = true;
    },
    async [Symbol.asyncDispose]() {
      if (!isRunning) await control.run('start');
    },
  };
}
