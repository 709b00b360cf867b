// The reaper's near side: tells a helper process what to take down should this process die first.

import { spawn } from 'node:child_process';
import { extname } from 'node:path';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

/** One line of what the reaper process is told. */
export type ReaperNote =
  | { readonly kind: 'process'; readonly pid: number; readonly signal: NodeJS.Signals }
  | { readonly kind: 'process-ended'; readonly pid: number }
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'folder-removed'; readonly path: string };

let notes: Socket | undefined;

/**
 * Tells the reaper; it acts when its end of the pipe closes, which happens however this process
 * ends: normally, by process.exit, by an uncaught error or by SIGKILL.
 */
export function tellReaper(note: ReaperNote): void {
  notes ??= startReaper();
  notes.write(`${JSON.stringify(note)}\n`);
}

function startReaper(): Socket {
  // Compiled, this file and its neighbour end in .js.
  const { NODE_COMPILE_CACHE: cache } = process.env;
  const script = new URL(`./reaper-main${extname(import.meta.url)}`, import.meta.url);
  const child = spawn(process.execPath, [fileURLToPath(script)], {
    // A session of its own: Ctrl-C in a terminal ends the tests, not what cleans up after them.
    detached: true,
    cwd: '/',
    // Nothing of ours, but what spares it to strip the same types again.
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const stdin = child.stdin as Socket;
  const forget = (): void => {
    if (notes === stdin) notes = undefined;
  };
  // Someone ended the reaper: the next note starts another one.
  child.on('error', forget);
  stdin.on('error', forget);
  child.unref();
  stdin.unref();
  return stdin;
}
