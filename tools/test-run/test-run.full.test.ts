import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { budget, budgetSeconds, partOf } from './budget.ts';
import { minutes, progressLine } from './progress.ts';
import { summarize } from './summary.ts';
import { findTestFiles, isHeavy, selectTestFiles } from './test-files.ts';
import { parseEngineTestOptions, parseTestOptions } from './test-options.ts';
import type { TestRunOptions } from './test-run.ts';
import { root } from './test-worker.ts';

const all = findTestFiles();
const none = { ...parseTestOptions([]), failedBefore: [] };

test('the parts of the time budget add up to seven minutes', () => {
  assert.equal(budgetSeconds, 420);
  assert.equal(
    budget.reduce((sum, { seconds }) => sum + seconds, 0),
    budgetSeconds,
  );
});

test('every test file belongs to one part of the time budget', () => {
  for (const file of all) {
    const named = budget.filter(({ files }) => files?.test(file) === true);
    assert.ok(named.length <= 1, file);
    assert.equal(partOf(file), named[0] ?? budget[0]);
  }
});

test('a run of the engines selects tests by title, and rejects unknown arguments', () => {
  assert.deepEqual(parseEngineTestOptions(['kurrentdb', '--title', 'a suite › reads (1)']), {
    words: ['kurrentdb'],
    titles: [String.raw`a suite reads \(1\)`],
    stress: false,
  });
  assert.throws(() => parseEngineTestOptions(['--titel', 'x']), /--titel/);
});

test('words choose files by path, and check leaves out files that need servers or are slow', () => {
  assert.deepEqual(selectTestFiles(all, none), all);
  const chosen = selectTestFiles(all, { ...none, words: ['tools/test-run', 'src/contracts/'] });
  assert.ok(chosen.length > 2);
  assert.ok(chosen.every((file) => /tools\/test-run|src\/contracts\//.test(file)));
  const fast = selectTestFiles(all, { ...none, fast: true });
  assert.ok(fast.length > 100 && fast.every((file) => !isHeavy(file)));
});

test('a test file has one of four kinds of names', () => {
  const isOfKind = (file: string): boolean =>
    /\/[^./]+(?:\.(?:servers|full|engines))?\.test\.ts$/.test(file);
  assert.deepEqual(
    all.filter((file) => !isOfKind(file)),
    [],
  );
});

test('engines leave out files that need the server of another engine', () => {
  const chosen = selectTestFiles(all, { ...none, engines: ['sqlite', 'postgres'] });
  assert.ok(chosen.includes('test/store/kill-postgres.servers.test.ts'));
  assert.ok(chosen.includes('src/contracts/names.test.ts'));
  assert.ok(!chosen.some((file) => /redis|nats/.test(file)));
  assert.throws(() => parseTestOptions(['--engines', 'mysql']), /Unknown engine "mysql"/);
  assert.throws(() => parseTestOptions(['--engine', 'sqlite']), /--engine/);
});

test('only the failed files of the last run are run again', () => {
  const failedBefore = ['src/contracts/names.test.ts'];
  const options = { ...parseTestOptions(['--rerun-failed']), failedBefore };
  assert.deepEqual(selectTestFiles(all, options), failedBefore);
});

test('the status line names the files that run longest first', () => {
  const line = progressLine({
    total: 10,
    done: 4,
    failures: 1,
    elapsedSeconds: 65,
    leftSeconds: 90,
    running: [
      { name: 'src/a/b.test.ts', seconds: 1.2 },
      { name: 'test/c/d.servers.test.ts', seconds: 7 },
    ],
  });
  assert.equal(line, '4/10 files · 1 failed · 1:05, about 1:30 left · c/d 7 s, a/b 1 s');
  assert.equal(minutes(59.6), '1:00');
});

test('the summary ends with the counts and says why tests were skipped', () => {
  const text = summarize(
    [
      { name: 'types', seconds: 2, passed: 1, failed: 0, skipped: [] },
      {
        name: 'a.test.ts',
        seconds: 4,
        passed: 3,
        failed: 1,
        skipped: ['needs Redis', 'needs Redis'],
      },
    ],
    { seconds: 6, showsBudget: true },
  );
  assert.match(text, /^ +2 × needs Redis$/m);
  assert.match(text, /^Slowest:\n +4\.0 s {2}a\.test\.ts$/m);
  assert.match(text, /^ {2}checks and core +2 +6 s +270 s$/m);
  assert.equal(text.split('\n').at(-1), '4 passed, 1 failed, 2 skipped');
});

/** Faults of a test file, and what the runner reports. */
const faults: Readonly<Record<string, readonly [code: string, problem: RegExp]>> = {
  breaks: [
    `test('works', () => console.log('quiet'));
     describe('a suite', () => test('breaks', (t) => {
       t.diagnostic('seed 7'); console.log('loud'); throw new Error('no');
     }));`,
    /a suite › breaks\n {4}Error: no[^]* {4}seed 7\n {2}output:\n(?: {4}quiet\n)? {4}loud\n {2}run it again: npm test -- \S+breaks\.test\.ts --title "a suite › breaks"/,
  ],
  exits: [`test('leaves', () => process.exit(3));`, /the test process ended with 3/],
  throws: [`throw new Error('at load');`, /Error: at load/],
  warns: [`test('leaks', () => process.emitWarning('a leak'));`, /Warning: a leak/],
  skips: [`test('why', { skip: true }, () => undefined);`, /why\n {4}skipped without a reason/],
  late: [
    `test('ends', () => void setTimeout(() => { throw new Error('too late'); }));
     test('next', () => new Promise((resolve) => setTimeout(resolve, 500)));`,
    /uncaughtException: Error: too late/,
  ],
  rejects: [
    `test('ends', () => void Promise.reject(new Error('not awaited')));
     test('next', () => new Promise((resolve) => setTimeout(resolve, 500)));`,
    /unhandledRejection: Error: not awaited/,
  ],
};

test('each kind of fault is one failure, and a green file prints nothing', async () => {
  const { stdout, code, folder } = await runFiles({
    ...Object.fromEntries(Object.entries(faults).map(([name, [source]]) => [name, source])),
    green: `test('works', () => console.log('silence'));`,
    waits: `test('waits', { skip: 'needs Redis' }, () => undefined);`,
  });
  assert.equal(code, 1);
  const reports = stdout.split(/^✗ /m).slice(1);
  for (const [name, [, problem]] of Object.entries(faults)) {
    const own = reports.filter((report) => report.startsWith(`${folder}/${name}.test.ts\n`));
    assert.equal(own.length, 1, `${name}: ${stdout}`);
    assert.match(own[0] ?? '', problem);
  }
  assert.doesNotMatch(stdout, /silence/);
  assert.match(stdout, /^ +1 × needs Redis$/m);
  assert.equal(stdout.trimEnd().split('\n').at(-1), '5 passed, 7 failed, 1 skipped');
});

test('a file that does not end in time is one failure', async () => {
  const { stdout, code } = await runFiles(
    { hangs: `test('forever', () => new Promise(() => setInterval(() => 0, 1e3)));` },
    { fileTimeoutMs: 2_000 },
  );
  assert.equal(code, 1);
  assert.match(stdout, /did not end within 2 s/);
  assert.equal(stdout.trimEnd().split('\n').at(-1), '0 passed, 1 failed, 0 skipped');
});

test('with bail, no file starts after the first failure', async () => {
  const { stdout, code } = await runFiles(
    {
      first: `test('works', () => undefined);`,
      second: `test('breaks', () => { throw new Error('no'); });`,
      third: `test('works', () => undefined);`,
    },
    { slots: 1, bail: true },
  );
  assert.equal(code, 1);
  assert.equal(stdout.trimEnd().split('\n').at(-1), '1 passed, 1 failed, 0 skipped');
});

test('the diagnostics of a green file are printed on request', async () => {
  const noted = { noted: `test('works', (t) => t.diagnostic('topic | passed'));` };
  for (const showsNotes of [false, true]) {
    const { stdout, code } = await runFiles(noted, { showsNotes });
    assert.equal(code, undefined);
    assert.equal(/^topic \| passed$/m.test(stdout), showsNotes);
  }
});

/** Runs the sources as test files in a separate process, as the runner's commands do. */
async function runFiles(
  sources: Readonly<Record<string, string>>,
  options: Partial<Pick<TestRunOptions, 'slots' | 'bail' | 'fileTimeoutMs' | 'showsNotes'>> = {},
): Promise<{ readonly stdout: string; readonly code: unknown; readonly folder: string }> {
  mkdirSync(join(root, '.millrace'), { recursive: true });
  const folder = mkdtempSync(join(root, '.millrace/test-run-'));
  const files = Object.entries(sources).map(([name, source]) => {
    const file = join(folder, `${name}.test.ts`);
    writeFileSync(file, `import { describe, test } from 'node:test';\n${source}\n`);
    return relative(root, file);
  });
  const run = { slots: 2, fileTimeoutMs: 60_000, files, command: 'npm test --', ...options };
  const script = `
    const { runTests } = await import('./tools/test-run/test-run.ts');
    const { printSummary } = await import('./tools/test-run/summary.ts');
    const startedAt = performance.now();
    printSummary(await runTests(${JSON.stringify(run)}), { startedAt });`;
  const args = ['--input-type=module', '--eval', script];
  try {
    return await new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: root }, (error, stdout) =>
        resolve({ stdout, code: error?.code, folder: relative(root, folder) }),
      );
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
