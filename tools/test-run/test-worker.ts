// One worker process, as the runner sees it: it takes a file, reports its tests, and takes the next.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { WorkerMessage, WorkerRequest } from './messages.ts';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Finds installed programs; processes and threads reuse the stripped and compiled sources. */
export function testEnvironment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env['PATH'] ?? ''}`,
    NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/millrace-compile'),
  };
}

const outputCharsMax = 20_000;

export interface WorkerOptions {
  /** A file that takes longer is a failed file, and its worker is killed. */
  readonly fileTimeoutMs: number;
  /** Runs only the tests whose titles match. */
  readonly titles?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface TestWorker {
  /** Calls back for each test; resolves to `false` when the process is gone. */
  run(file: string, report: (message: WorkerMessage) => void): Promise<boolean>;
  /** Resolves when the process has ended; an open handle is reported as a failure. */
  end(report: (message: WorkerMessage) => void): Promise<void>;
  /** The output of the current file so far, shown next to a failure. */
  output(): string;
  kill(): void;
}

export function startTestWorker(options: WorkerOptions): TestWorker {
  const { fileTimeoutMs, titles = [], env = {} } = options;
  const child = spawn(
    process.execPath,
    [
      '--test-reporter=./tools/test-run/reporter.ts',
      ...titles.map((title) => `--test-name-pattern=${title}`),
      'tools/test-run/worker-main.ts',
    ],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...testEnvironment(), ...env },
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-outputCharsMax);
    });
  }
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const ask = (request: WorkerRequest): void => void child.send(request, () => undefined);

  return {
    async run(file, report) {
      output = '';
      const running = new Set<string>();
      const done = Promise.withResolvers<void>();
      let hasFailed = false;
      const take = (message: WorkerMessage): void => {
        if (message.kind === 'started') running.add(message.title);
        else if ('title' in message) running.delete(message.title);
        if (message.kind === 'failed') hasFailed = true;
        if (message.kind === 'done') done.resolve();
        else report(message);
      };
      const fail = (error: string): void => {
        const title = [...running].at(-1);
        report({ kind: 'failed', error, ...(title === undefined ? {} : { title }) });
      };
      child.on('message', take);
      let isLate = false;
      const deadline = setTimeout(() => {
        isLate = true;
        child.kill('SIGKILL');
      }, fileTimeoutMs);
      ask({ file });
      const end = await Promise.race([done.promise, exited]);
      clearTimeout(deadline);
      child.off('message', take);
      if (end === undefined) return true;
      if (isLate) fail(`did not end within ${fileTimeoutMs / 1000} s`);
      else if (!hasFailed) fail(`the test process ended with ${end[0] ?? end[1]}`);
      return false;
    },
    async end(report) {
      output = '';
      child.on('message', report);
      ask({ end: true });
      await exited;
      destroyPipes(child);
    },
    output: () => output,
    kill() {
      child.kill('SIGKILL');
      destroyPipes(child);
    },
  };
}

/** A process that a test left running may hold the pipes open. */
function destroyPipes(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stderr?.destroy();
}
