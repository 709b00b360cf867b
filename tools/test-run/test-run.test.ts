import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, test } from 'node:test';
import { budget, budgetSeconds, partOf } from './budget.ts';
import { minutes, progressLine } from './progress.ts';
import { summarize } from './summary.ts';
import { findTestFiles, isHeavy, selectTestFiles } from './test-files.ts';
import { parseTestOptions } from './test-options.ts';
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

test('words choose files by path, and check leaves out files that need servers or are slow', () => {
  assert.deepEqual(selectTestFiles(all, none), all);
  const chosen = selectTestFiles(all, { ...none, words: ['tools/test-run', 'src/contracts/'] });
  assert.ok(chosen.length > 2);
  assert.ok(chosen.every((file) => /tools\/test-run|src\/contracts\//.test(file)));
  const fast = selectTestFiles(all, { ...none, fast: true });
  assert.ok(fast.length > 100 && fast.every((file) => !isHeavy(file)));
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

/** Test files of our own, run by the real runner in a process of its own. */
mkdirSync(join(root, '.millrace'), { recursive: true });
const folder = mkdtempSync(join(root, '.millrace/test-run-'));
after(() => rmSync(folder, { recursive: true, force: true }));

async function run(
  name: string,
  code: string,
  flags: readonly string[] = [],
): Promise<{ readonly code: number; readonly output: string }> {
  const file = join(folder, `${name}.test.ts`);
  writeFileSync(file, `import { after, describe, test } from 'node:test';\n${code}\n`);
  const script = `
    const { runTests } = await import('./tools/test-run/test-run.ts');
    const { summarize } = await import('./tools/test-run/summary.ts');
    const results = await runTests({
      lanes: 1, fileTimeoutMs: 3_000, files: ${JSON.stringify([relative(root, file)])},
      titles: ${JSON.stringify(flags)}, command: 'npm test --',
    });
    console.log(summarize(results, { seconds: 1 }));`;
  return new Promise((resolve) => {
    const args = ['--input-type=module', '--eval', script];
    execFile(process.execPath, args, { cwd: root }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, output: stdout + stderr }),
    );
  });
}

test('a failure is printed with its output and the command that repeats it; a green test prints nothing', async () => {
  const { output } = await run(
    'red',
    `test('works', () => console.log('quiet'));
     describe('a suite', () => test('breaks', () => { console.log('loud'); throw new Error('no'); }));
     test('waits', { skip: 'needs Redis' }, () => undefined);`,
  );
  assert.match(output, /✗ \S+red\.test\.ts\n {2}a suite › breaks\n {4}Error: no/);
  assert.match(output, /printed meanwhile:\n(?: {4}quiet\n)? {4}loud/);
  assert.match(output, /run it again: npm test -- \S+red\.test\.ts --title "a suite › breaks"/);
  assert.match(output, /\n1 passed, 1 failed, 1 skipped\n$/);
  const green = await run('green', `test('works', () => console.log('quiet'));`);
  assert.doesNotMatch(green.output, /quiet/);
  assert.match(green.output, /\n1 passed, 0 failed, 0 skipped\n$/);
});

for (const [name, code, problem] of [
  [
    'hangs',
    `test('forever', () => new Promise(() => setInterval(() => 0, 1e3)));`,
    /did not end within 3 s/,
  ],
  ['exits', `test('leaves', () => process.exit(3));`, /the test process ended with 3/],
  ['throws', `throw new Error('at load');`, /Error: at load/],
  ['warns', `test('leaks', () => { process.emitWarning('a leak'); });`, /Warning: a leak/],
  ['skips', `test('why', { skip: true }, () => undefined);`, /skipped without a reason/],
  [
    'late',
    `test('ends', () => { setTimeout(() => { throw new Error('late'); }); });
            test('next', () => new Promise((resolve) => setTimeout(resolve, 50)));`,
    /late/,
  ],
] as const) {
  test(`a file that ${name} is a failed file`, async () => {
    const { output } = await run(name, code);
    assert.match(output, problem);
    assert.match(output, /, 1 failed, /);
  });
}
