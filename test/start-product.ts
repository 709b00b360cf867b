// The product as a process: started, heard, stopped.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { tellReaper } from '../src/testing/servers/reaper.ts';

const main = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

export interface StartedProduct {
  /** What it said before it was ready. */
  readonly said: string;
  /** For clients of KurrentDB. */
  readonly url: string;
  /** Of the HTTP API. */
  readonly base: string;
  readonly token: string | undefined;
  /** What it has said until now. */
  readonly heard: () => string;
  /** Until it has said this, from its start on, and so often. */
  readonly hears: (text: string, times?: number) => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<Ended>;
  readonly stop: (signal: NodeJS.Signals) => Promise<number | null>;
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const waitMsMax = 120_000;

export async function startProduct(
  cwd: string,
  [command = 'start', ...more]: readonly string[],
  /** What it says once it is ready. */
  last = 'Ctrl-C',
): Promise<StartedProduct> {
  const child = spawn(
    process.execPath,
    [main, command, '--port', '0', '--kurrent-port', '0', ...more],
    {
      cwd,
      // Of a product that works, tests need not hear.
      env: { MILLRACE_LOG_LEVEL: 'warn', ...process.env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  tellReaper({ kind: 'process', pid: child.pid ?? 0, signal: 'SIGKILL' });
  const ended = once(child, 'exit').then(([code, signal]): Ended => {
    tellReaper({ kind: 'process-ended', pid: child.pid ?? 0 });
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  let said = '';
  const waiting = new Set<() => void>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    said += `${line}\n`;
    for (const look of waiting) look();
  });
  const hears = (text: string, times = 1): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(reject, waitMsMax, new Error(`it never said '${text}': ${said}`));
      const look = (): void => {
        if (said.split(text).length <= times) return;
        waiting.delete(look);
        clearTimeout(timer);
        resolve();
      };
      waiting.add(look);
      void ended.then(() => reject(new Error(`it ended before it said '${text}': ${said}`)));
      look();
    });
  await hears(last);
  return {
    said,
    url: `${/kurrentdb:\S+/.exec(said)?.[0] ?? ''}&discoveryInterval=1`,
    base: /http:\/\/\S+?(?=\s)/.exec(said)?.[0] ?? '',
    token: /mr_\S+/.exec(said)?.[0],
    heard: () => said,
    hears,
    ended,
    signal: (signal) => void child.kill(signal),
    async stop(signal) {
      child.kill(signal);
      return (await ended).code;
    },
  };
}

export async function runMillrace(
  cwd: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const child = spawn(process.execPath, [main, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}
