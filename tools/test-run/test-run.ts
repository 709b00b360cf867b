// Runs checks and test files in parallel slots and collects the results, for `npm test`, `npm run soak` and
// `npm run test:engines`.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { WorkerMessage } from './messages.ts';
import { createProgress, type Progress } from './progress.ts';
import {
  root,
  startTestWorker,
  testEnvironment,
  type TestWorker,
  type WorkerOptions,
} from './test-worker.ts';

export interface Check {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

export interface TestRunOptions extends WorkerOptions {
  /** How many checks and files run at once. */
  readonly slots: number;
  readonly checks?: readonly Check[];
  /** In the order in which they start. */
  readonly files: readonly string[];
  /** Whether a file must not share its process with other files. */
  readonly isAlone?: (file: string) => boolean;
  /** How long a check or file took last time, for the estimate. */
  readonly expectedSeconds?: (name: string) => number;
  /** Stops at the first failure. */
  readonly bail?: boolean;
  /** Prints the diagnostics of tests that pass. */
  readonly showsNotes?: boolean;
  /** The npm command that runs tests again, as it is printed next to a failure. */
  readonly command: string;
}

export interface TestResult {
  /** A check's name or a file's path. */
  readonly name: string;
  readonly seconds: number;
  readonly passed: number;
  readonly failed: number;
  /** Why tests were skipped, a reason for each. */
  readonly skipped: readonly string[];
}

/** Runs everything, prints each failure when it happens, and resolves to the results. */
export async function runTests(options: TestRunOptions): Promise<readonly TestResult[]> {
  const { slots, checks = [], files, bail = false } = options;
  const queue: (Check | string)[] = [...checks, ...files];
  const results: TestResult[] = [];
  const workers = new Set<TestWorker>();
  /** The folders of the running files. */
  const folders = new Set<string>();
  const progress = createProgress({
    names: queue.map(nameOf),
    expectedSeconds: options.expectedSeconds ?? (() => 1),
  });
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    queue.length = 0;
    for (const worker of workers) worker.kill();
  };
  const onSignal = (): void => {
    stop();
    process.exit(1);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, onSignal);
  try {
    await Promise.all(Array.from({ length: slots }, runSlot));
  } finally {
    progress.end();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal);
  }
  return results;

  async function runSlot(): Promise<void> {
    let worker: TestWorker | undefined;
    let folder = '';
    for (let task = takeNext(queue, folder, folders); task !== undefined;) {
      folders.delete(folder);
      folder = folderOf(task);
      folders.add(folder);
      const isAlone = typeof task === 'string' && options.isAlone?.(task) === true;
      if (isAlone) worker = await endWorker(worker);
      const score = createScore(nameOf(task), progress);
      if (typeof task !== 'string') await runCheck(task, score);
      else worker = await runFile(task, score, worker ?? startTestWorker(options));
      if (isAlone) worker = await endWorker(worker);
      if (isStopped) return;
      results.push(score.end());
      if (bail && score.failed > 0) stop();
      task = takeNext(queue, folder, folders);
    }
    folders.delete(folder);
    await endWorker(worker);
  }

  /** Resolves to the worker, or to undefined if the worker is gone. */
  async function runFile(
    file: string,
    score: Score,
    worker: TestWorker,
  ): Promise<TestWorker | undefined> {
    workers.add(worker);
    const isAlive = await worker.run(file, (message) => note(message, score, worker));
    if (isAlive) return worker;
    workers.delete(worker);
    return undefined;
  }

  async function endWorker(worker: TestWorker | undefined): Promise<undefined> {
    if (worker === undefined || isStopped) return;
    const score = createScore('test workers');
    await worker.end((message) => note(message, score, worker));
    workers.delete(worker);
    if (score.failed > 0) results.push(score.end());
  }

  function note(message: WorkerMessage, score: Score, worker: TestWorker): void {
    if (isStopped) return;
    if (message.kind === 'passed') score.passed += 1;
    if (message.kind === 'skipped') score.skipped.push(message.reason);
    if (message.kind === 'noted' && options.showsNotes === true) progress.print(message.text);
    if (message.kind !== 'failed') return;
    score.failed += 1;
    const { title, error } = message;
    const output = worker.output().trimEnd();
    progress.printFailure(
      [
        `✗ ${score.name}${title === undefined ? '' : `\n  ${title}`}\n${indent(error)}`,
        ...(output === '' ? [] : [`  output:\n${indent(output)}`]),
        ...(files.includes(score.name) ? [`  run it again: ${rerun(score.name, title)}`] : []),
      ].join('\n'),
    );
  }

  function rerun(file: string, title: string | undefined): string {
    const flag = title === undefined ? '' : ` --title ${JSON.stringify(title)}`;
    return `${options.command} ${file}${flag}`;
  }

  async function runCheck({ name, command }: Check, score: Score): Promise<void> {
    const [program, ...flags] = command;
    const child = spawn(program, flags, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: testEnvironment(),
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    const [code] = (await once(child, 'close')) as [number | null];
    if (code === 0) {
      score.passed += 1;
      return;
    }
    score.failed += 1;
    progress.printFailure(`✗ ${name}\n${indent(output)}\n  run it again: npx ${command.join(' ')}`);
  }
}

/**
 * The next check or file of a slot: of the same folder as the last one, because the worker has loaded its modules, else of
 * a folder in which no other slot works.
 */
function takeNext(
  queue: (Check | string)[],
  folder: string,
  running: ReadonlySet<string>,
): Check | string | undefined {
  const same = queue.findIndex((each) => folderOf(each) === folder);
  const free = same < 0 ? queue.findIndex((each) => !running.has(folderOf(each))) : same;
  return queue.splice(Math.max(free, 0), 1)[0];
}

/** `src/engines/redis/bus/bus.test.ts` → `src/engines/redis`; of a check, its name. */
function folderOf(task: Check | string): string {
  return typeof task === 'string' ? task.split('/').slice(0, -1).slice(0, 3).join('/') : task.name;
}

interface Score {
  readonly name: string;
  passed: number;
  failed: number;
  readonly skipped: string[];
  end(): TestResult;
}

function createScore(name: string, progress?: Progress): Score {
  const startedAt = performance.now();
  progress?.start(name);
  const score: Score = {
    name,
    passed: 0,
    failed: 0,
    skipped: [],
    end() {
      const { passed, failed, skipped } = score;
      const seconds = (performance.now() - startedAt) / 1000;
      progress?.finish(name);
      return { name, seconds, passed, failed, skipped };
    },
  };
  return score;
}

function nameOf(task: Check | string): string {
  return typeof task === 'string' ? task : task.name;
}

function indent(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}
