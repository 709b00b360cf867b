// Starts the product as a process, reads its output, and stops it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { resolve as resolvePath } from 'node:path';
import { createInterface } from 'node:readline';
import { childScript } from '../src/testing/bundled-children.ts';
import { notifyReaper } from '../src/testing/servers/reaper.ts';

const main = childScript(new URL('../src/cli/main.ts', import.meta.url));

export interface StartedProduct {
  /** The output until the product was ready. */
  readonly said: string;
  /** The URL for KurrentDB clients. */
  readonly url: string;
  /** The base URL of the HTTP API. */
  readonly base: string;
  readonly token: string | undefined;
  /** The output so far. */
  readonly output: () => string;
  /** Resolves when the output contains this text this many times. */
  readonly whenPrinted: (text: string, times?: number) => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<Ended>;
  readonly stop: (signal: NodeJS.Signals) => Promise<number | null>;
}

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const waitMsMax = 120_000;

export async function startProduct(
  cwd: string,
  [command = 'start', ...more]: readonly string[],
  /** The text that the product prints when it is ready. */
  last = 'Ctrl-C',
  env: Readonly<Record<string, string>> = {},
): Promise<StartedProduct> {
  const child = spawn(
    process.execPath,
    [main, command, '--port', '0', '--kurrent-port', '0', ...more],
    {
      cwd,
      // Tests need only warnings and errors of the product.
      env: { MILLRACE_LOG_LEVEL: 'warn', ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  notifyReaper({ kind: 'process', pid: child.pid ?? 0, signal: 'SIGKILL' });
  const ended = once(child, 'exit').then(([code, signal]): Ended => {
    notifyReaper({ kind: 'process-ended', pid: child.pid ?? 0 });
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  let output = '';
  const waiting = new Set<() => void>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    output += `${line}\n`;
    for (const check of waiting) check();
  });
  const whenPrinted = (text: string, times = 1): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        reject,
        waitMsMax,
        new Error(`the product never printed '${text}': ${output}`),
      );
      const check = (): void => {
        if (output.split(text).length <= times) return;
        waiting.delete(check);
        clearTimeout(timer);
        resolve();
      };
      waiting.add(check);
      void ended.then(() =>
        reject(new Error(`the product ended before it printed '${text}': ${output}`)),
      );
      check();
    });
  await whenPrinted(last);
  const [, file] = /(?:admin token +in |"adminTokenFile":")([^"\n]+)/.exec(output) ?? [];
  const token = file && readFileSync(resolvePath(cwd, file), 'utf8').trim();
  const printed = /kurrentdb:\/\/[^"\s]+(?: [^"\n]+)?/.exec(output)?.[0] ?? '';
  return {
    said: output,
    url: `${printed.replace(/\$\(cat .*?\)/, token ?? '')}&discoveryInterval=1`,
    base: /http:\/\/\S+?(?=\s)/.exec(output)?.[0] ?? '',
    token,
    output: () => output,
    whenPrinted,
    ended,
    signal: (signal) => void child.kill(signal),
    async stop(signal) {
      child.kill(signal);
      return (await ended).code;
    },
  };
}
