// `npm test`: every check and every test, one summary line. `--fast` leaves out what needs servers
// or packs the package; words after `--` pick test files by path and leave out the checks.

import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { hostSharedServers } from '../src/testing/servers/shared-servers.ts';
import type { TestOutcome } from './test-reporter.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const words = process.argv.slice(2);
const fast = words.includes('--fast');
const picked = words.filter((word) => !word.startsWith('-'));
const failures: string[] = [];
const totals = { passed: 0, failed: 0, skipped: 0 };

interface Check {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const checks: readonly Check[] = [
  { name: 'types', command: ['tsc', '-p', '.'] },
  { name: 'lint', command: ['oxlint', '--type-aware', '--deny-warnings'] },
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'dead exports', command: ['knip', '--no-progress'] },
];

const files = globSync('{src,test,tools,bench,modules}/**/*.test.ts', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
})
  .filter((file) => !file.endsWith('.engines.test.ts'))
  .filter((file) => picked.length === 0 || picked.some((word) => file.includes(word)))
  .toSorted();
const needsMore = (file: string): boolean => /\.(servers|full)\.test\.ts$/.test(file);
const plain = files.filter((file) => !needsMore(file));
const heavy = fast ? [] : files.filter(needsMore);

if (picked.length === 0) {
  // Two cores: the checks in pairs, each a process of its own.
  for (let index = 0; index < checks.length; index += 2) {
    await Promise.all(checks.slice(index, index + 2).map(runCheck));
  }
}
await runTests('tests', plain, ['--test-isolation=none']);
if (heavy.length > 0) {
  await using host = await hostSharedServers();
  await runTests('tests with servers', heavy, ['--test-concurrency=2']);
  await host[Symbol.asyncDispose]();
}

for (const failure of failures) console.log(`\n${failure}`);
if (totals.passed + totals.failed === 0) {
  console.log('no test ran');
  process.exitCode = 1;
}
const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : '';
console.log(`\n${totals.passed} passed, ${totals.failed} failed${skipped}`);
if (totals.failed > 0) process.exitCode = 1;

async function runCheck(check: Check): Promise<void> {
  const startedAt = performance.now();
  const [program, ...flags] = check.command;
  let output = '';
  const child = spawn(program, flags, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await exitCode(child);
  report(check.name, code === 0, startedAt);
  if (code === 0) totals.passed += 1;
  else {
    totals.failed += 1;
    failures.push(`✗ ${check.name}: ${check.command.join(' ')}\n${output.trimEnd()}`);
  }
}

async function runTests(
  name: string,
  paths: readonly string[],
  flags: readonly string[],
): Promise<void> {
  if (paths.length === 0) return;
  const startedAt = performance.now();
  const before = { ...totals };
  const child = spawn(
    process.execPath,
    ['--test', ...flags, '--test-reporter=./tools/test-reporter.ts', ...paths],
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
  const code = exitCode(child);
  for await (const line of createInterface({ input: child.stdout })) note(line);
  const failed = totals.failed - before.failed;
  if ((await code) !== 0 && failed === 0) {
    totals.failed += 1;
    failures.push(`✗ ${name}: the test process ended with code ${await code}`);
  }
  const ran = totals.passed - before.passed + failed;
  report(`${ran} ${name} in ${paths.length} files`, totals.failed === before.failed, startedAt);
}

function note(line: string): void {
  if (!line.startsWith('{"outcome":')) {
    console.log(line);
    return;
  }
  const { outcome, title, file, error } = JSON.parse(line) as TestOutcome;
  totals[outcome] += 1;
  if (outcome === 'failed') failures.push(`✗ ${file}\n  ${title}\n${error ?? ''}`);
}

function exitCode(child: ReturnType<typeof spawn>): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}

function report(name: string, ok: boolean, startedAt: number): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${ok ? '✓' : '✗'} ${name} (${seconds} s)`);
}
