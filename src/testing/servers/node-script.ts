// A script in a separate process, for tests about what remains after it ends.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface NodeScript {
  /** The first line that the script prints, as JSON. Read it before the script ends. */
  printed(): Promise<unknown>;
  /** How it ended: its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
}

/** Runs the code as a module; `load('./redis-server.ts')` imports from this folder. */
export function runNodeScript(code: string, env: NodeJS.ProcessEnv = process.env): NodeScript {
  const load = `const load = (name) => import(new URL(name, ${JSON.stringify(import.meta.url)}));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', `${load}\n${code}`], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit').then(([exitCode, signal]) => exitCode ?? signal);
  return {
    printed: () => firstLine(child.stdout),
    ended,
    kill: (signal) => void child.kill(signal),
  };
}

async function firstLine(output: NodeJS.ReadableStream): Promise<unknown> {
  for await (const line of createInterface({ input: output })) return JSON.parse(line);
  throw new Error('the script printed nothing');
}
