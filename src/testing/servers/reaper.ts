// The client of the reaper: registers what a helper process must remove if this process dies first.

import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

/** One line of the protocol to the reaper process. */
export type ReaperNote =
  | { readonly kind: 'process'; readonly pid: number; readonly signal: NodeJS.Signals }
  | { readonly kind: 'process-ended'; readonly pid: number }
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'folder-removed'; readonly path: string };

let notes: Socket | undefined;

/**
 * Notifies the reaper, which acts when this process closes the pipe: at a normal exit, process.exit, an uncaught error
 * or SIGKILL.
 */
export function notifyReaper(note: ReaperNote): void {
  notes ??= startReaper();
  notes.write(`${JSON.stringify(note)}\n`);
}

function startReaper(): Socket {
  // The compiled files end in .js.
  const { NODE_COMPILE_CACHE: cache } = process.env;
  const script = new URL(`./reaper-main${extname(import.meta.url)}`, import.meta.url);
  const child = spawn(process.execPath, [fileURLToPath(script)], {
    // A separate session, so Ctrl-C in a terminal ends the tests but not the reaper.
    detached: true,
    cwd: '/',
    // Pass only the compile cache of the environment.
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const stdin = child.stdin as Socket;
  const forget = (): void => {
    if (notes === stdin) notes = undefined;
  };
  // The reaper process has ended: the next note starts another one.
  child.on('error', forget);
  stdin.on('error', forget);
  child.unref();
  stdin.unref();
  return stdin;
}
