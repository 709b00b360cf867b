// Runs test files in processes of their own and keeps the score: what `npm test` and
// `npm run test:engines` have in common.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { TestOutcome } from './test-reporter.ts';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** What a process that a test left behind may still have to say. */
const drainMs = 2000;

/** More files than these are told by their number. */
const namedMax = 4;

export interface TestRunOptions {
  /** Checks and groups that run at once: those that were asked for first come first. */
  readonly lanes: number;
  /** A test that hangs is a failed test with a name, not a run that somebody else has to kill. */
  readonly groupTimeoutMs: number;
  /** How many of the groups that took longest are told. Default: none. */
  readonly slowest?: number;
}

export interface TestRun {
  /** Each group of files in a process of its own. */
  readonly test: (name: string, groups: readonly (readonly string[])[]) => Promise<void>;
  readonly check: (name: string, command: readonly [string, ...string[]]) => Promise<void>;
  /** Prints failures and the one line, and sets the exit code. */
  readonly finish: () => void;
}

interface Score {
  passed: number;
  failed: number;
  skipped: number;
}

export function createTestRun(options: TestRunOptions): TestRun {
  const { lanes, groupTimeoutMs, slowest = 0 } = options;
  const totals: Score = { passed: 0, failed: 0, skipped: 0 };
  const failures: string[] = [];
  const taken: { readonly files: string; readonly seconds: number }[] = [];
  const children = new Set<ChildProcess>();
  const lane = createLanes(lanes);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      for (const child of children) child.kill('SIGKILL');
      process.exit(1);
    });
  }

  return {
    async test(name, groups) {
      let startedAt: number | undefined;
      const own = { passed: 0, failed: 0 };
      await Promise.all(
        groups.map((group) =>
          lane(async () => {
            startedAt ??= performance.now();
            const { passed, failed } = await runGroup(group);
            own.passed += passed;
            own.failed += failed;
          }),
        ),
      );
      const ran = own.passed + own.failed;
      const label = `${ran} ${name} in ${groups.flat().length} files`;
      report(label, own.failed === 0, startedAt ?? performance.now());
    },

    check: (name, command) =>
      lane(async () => {
        const startedAt = performance.now();
        const [program, ...flags] = command;
        let output = '';
        const child = spawn(program, flags, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
        child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
        child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
        const [code] = (await once(child, 'close')) as [number | null];
        report(name, code === 0, startedAt);
        if (code === 0) totals.passed += 1;
        else fail(`${name}: ${command.join(' ')}\n${output.trimEnd()}`);
      }),

    finish() {
      const longest = taken.toSorted((one, other) => other.seconds - one.seconds);
      for (const { files, seconds } of longest.slice(0, slowest)) {
        console.log(`${seconds.toFixed(1).padStart(7)} s  ${files}`);
      }
      for (const failure of failures) console.log(`\n✗ ${failure}`);
      if (totals.passed + totals.failed === 0) console.log('no test ran');
      const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : '';
      console.log(`\n${totals.passed} passed, ${totals.failed} failed${skipped}`);
      if (totals.failed > 0 || totals.passed === 0) process.exitCode = 1;
    },
  };

  async function runGroup(paths: readonly string[]): Promise<Score> {
    const score: Score = { passed: 0, failed: 0, skipped: 0 };
    const startedAt = performance.now();
    const child = spawn(
      process.execPath,
      ['--test', '--test-isolation=none', '--test-reporter=./tools/test-reporter.ts', ...paths],
      {
        cwd: root,
        stdio: ['ignore', 'pipe', 'inherit'],
        // Every process and every thread would strip the same types again.
        env: {
          ...process.env,
          NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/millrace-compile'),
        },
      },
    );
    children.add(child);
    const running = new Set<string>();
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => note(line, running, score));
    const closed = once(lines, 'close');
    let isLate = false;
    const deadline = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, groupTimeoutMs);
    // Not 'close': a process that a test left behind may hold the pipe open.
    const [code] = (await once(child, 'exit')) as [number | null];
    clearTimeout(deadline);
    children.delete(child);
    await Promise.race([closed, sleep(drainMs, undefined, { ref: false })]);
    child.stdout.destroy();
    const files = paths.length <= namedMax ? paths.join(', ') : `${paths.length} files`;
    taken.push({ files, seconds: (performance.now() - startedAt) / 1000 });
    if (isLate) {
      const titles = [...running].map((title) => `\n    ${title}`).join('');
      score.failed += 1;
      fail(
        `${files}\n  did not end within ${groupTimeoutMs / 1000} s; it was at${titles || ' none'}`,
      );
    } else if (code !== 0 && score.failed === 0) {
      score.failed += 1;
      fail(`${files}\n  the test process ended with code ${code}`);
    }
    return score;
  }

  function note(line: string, running: Set<string>, score: Score): void {
    if (!line.startsWith('{"outcome":')) {
      console.log(line);
      return;
    }
    const { outcome, title, file, error } = JSON.parse(line) as TestOutcome;
    if (outcome === 'started') {
      running.add(title);
      return;
    }
    running.delete(title);
    if (outcome === 'suite') return;
    score[outcome] += 1;
    if (outcome === 'failed') fail(`${file}\n  ${title}\n${error ?? ''}`);
    else totals[outcome] += 1;
  }

  function fail(failure: string): void {
    totals.failed += 1;
    failures.push(failure);
  }
}

/** So many at once, the others in the order in which they came. */
function createLanes(count: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let free = count;
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

function report(name: string, ok: boolean, startedAt: number): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${ok ? '✓' : '✗'} ${name} (${seconds} s)`);
}
