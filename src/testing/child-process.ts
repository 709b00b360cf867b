// Child processes that a test can kill: scripts that exchange messages with the test and end with it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childScript } from './bundled-children.ts';
import { notifyReaper } from './servers/reaper.ts';

export interface ChildOptions {
  /** Given to the script as JSON, in its first argument. */
  readonly input?: unknown;
  readonly nodeFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** How a process ended: its exit code, or the signal that ended it. */
export type ChildEnd = number | NodeJS.Signals;

/** A script in a child process. Disposing it kills the process. */
export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** All messages received so far. */
  readonly messages: readonly unknown[];
  readonly ended: Promise<ChildEnd>;
  /** The first message that matches, received or future; rejects if the process ends without it. */
  message<T>(fits: (message: unknown) => message is T): Promise<T>;
  /** Calls back for every message, including earlier ones. */
  onMessage(take: (message: unknown) => void): void;
  send(message: string | object): void;
  /** Default: SIGKILL. Resolves when the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<ChildEnd>;
  /** The standard error output of the process. */
  errors(): string;
}

/**
 * Starts a script.
 *
 * @example
 * import { startChild } from 'millrace/testing';
 *
 * const run = async (script: URL) => {
 *   await using child = startChild(script, { input: { seed: 42 } });
 *   await child.kill('SIGKILL');
 * };
 */
export function startChild(script: URL, options: ChildOptions = {}): Child {
  const { input = null, nodeFlags = [], env = {} } = options;
  const child = spawn(
    process.execPath,
    [...nodeFlags, childScript(script), JSON.stringify(input)],
    {
      // The cache spares many short-lived processes the compilation of the same files.
      env: { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'), ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    },
  );
  const { pid } = child;
  if (pid === undefined) throw new Error(`cannot start ${process.execPath}`);
  notifyReaper({ kind: 'process', pid, signal: 'SIGKILL' });

  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-20_000);
  });
  const messages: unknown[] = [];
  const takers = new Set<(message: unknown) => void>();
  child.on('message', (message) => {
    messages.push(message);
    for (const take of takers) take(message);
  });
  // `close`, not `exit`, because by then all messages have arrived.
  const ended = once(child, 'close').then(([code, signal]): ChildEnd => {
    notifyReaper({ kind: 'process-ended', pid });
    return (code ?? signal) as ChildEnd;
  });

  const onMessage = (take: (message: unknown) => void): void => {
    for (const message of messages) take(message);
    takers.add(take);
  };
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<ChildEnd> => {
    child.kill(signal);
    return ended;
  };

  return {
    pid,
    messages,
    ended,
    onMessage,
    kill,
    async message<T>(fits: (message: unknown) => message is T): Promise<T> {
      const found = Promise.withResolvers<T>();
      const take = (message: unknown): void => {
        if (fits(message)) found.resolve(message);
      };
      onMessage(take);
      void ended.then((end) =>
        found.reject(
          new Error(`the child ended with ${end} before it sent the message\n${errors}`),
        ),
      );
      try {
        return await found.promise;
      } finally {
        takers.delete(take);
      }
    },
    send: (message) => void child.send(message, () => undefined),
    errors: () => errors,
    async [Symbol.asyncDispose]() {
      await kill();
    },
  };
}

/** Node writes the cache at exit, which a killed process never reaches. */
let hasFlushed = false;

/**
 * Returns the input of this child process. The process ends together with its parent.
 *
 * @example
 * import { childInput, tellParent } from 'millrace/testing';
 *
 * const main = () => {
 *   const { seed } = childInput() as { readonly seed: number };
 *   tellParent({ started: seed });
 * };
 */
export function childInput(): unknown {
  process.once('disconnect', () => process.exit(0));
  return JSON.parse(process.argv[2] ?? 'null') as unknown;
}

/**
 * Sends a message to the parent process.
 *
 * @example
 * import { tellParent } from 'millrace/testing';
 *
 * const ready = () => tellParent('ready');
 */
export function tellParent(message: unknown): void {
  if (!hasFlushed) flushCompileCache();
  hasFlushed = true;
  // The parent may have ended: then the message is not needed.
  process.send?.(message, undefined, undefined, () => undefined);
}
