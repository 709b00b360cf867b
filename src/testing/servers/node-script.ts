// A script in a process of its own, for tests about what is left when that process ends.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export interface NodeScript {
  /** What the script prints in its first line, which is JSON. To be read before it ends. */
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
