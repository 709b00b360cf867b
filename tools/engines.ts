// `npm run test:engines`: heavier real engines than `npm test` asks for. Fetches what it can into
// .millrace/engines/, names what it could not, runs test/engines/*.engines.test.ts, one summary line.

import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { fetchFerretdb } from './engines-ferretdb.ts';
import type { TestOutcome } from './test-reporter.ts';

/** An engine that the tests start themselves, from the program that the variable points to. */
interface Engine {
  readonly name: string;
  readonly variable: string;
  /** The program's path; rejects with a sentence when it is not to be had here. */
  readonly fetch: (folder: string) => Promise<string>;
}

const engines: readonly Engine[] = [
  { name: 'FerretDB 1.24.0', variable: 'MILLRACE_ENGINE_FERRETDB', fetch: fetchFerretdb },
];

/** Servers that only their owner can give: a URL in the environment. */
const givenServers = [{ name: 'MongoDB', variable: 'MILLRACE_TEST_MONGODB' }];

const root = fileURLToPath(new URL('..', import.meta.url));
const picked = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const totals = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];

for (const { name, variable, fetch } of engines) {
  if (process.env[variable] !== undefined) continue;
  try {
    process.env[variable] = await fetch(`${root}.millrace/engines`);
    console.log(`✓ ${name}`);
  } catch (error) {
    console.log(`– ${name} could not be fetched: ${(error as Error).message}`);
  }
}
for (const { name, variable } of givenServers) {
  const isGiven = process.env[variable] !== undefined;
  console.log(isGiven ? `✓ ${name} (${variable})` : `– ${name}: ${variable} names no server`);
}

const files = globSync('test/engines/**/*.engines.test.ts', { cwd: root })
  .filter((file) => picked.length === 0 || picked.some((word) => file.includes(word)))
  .toSorted();
// An engine is a server of its own: the files one after the other, or they would starve each other.
const child = spawn(
  process.execPath,
  [
    '--test',
    '--test-concurrency=1',
    '--test-reporter=./tools/test-reporter.ts',
    ...(process.argv.includes('--stress') ? ['--test-timeout=3600000'] : []),
    ...files,
  ],
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
);
const ended = new Promise<number>((resolve, reject) => {
  child.once('error', reject);
  child.once('close', (code) => resolve(code ?? 1));
});
for await (const line of createInterface({ input: child.stdout })) note(line);
if ((await ended) !== 0 && totals.failed === 0) {
  totals.failed += 1;
  failures.push('✗ the test process ended with an error of its own');
}
for (const failure of failures) console.log(`\n${failure}`);
if (totals.passed + totals.failed === 0) console.log('no test ran');
console.log(`\n${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
if (totals.failed > 0) process.exitCode = 1;

function note(line: string): void {
  if (!line.startsWith('{"outcome":')) {
    console.log(line);
    return;
  }
  const { outcome, title, file, error } = JSON.parse(line) as TestOutcome;
  totals[outcome] += 1;
  if (outcome === 'failed') failures.push(`✗ ${file}\n  ${title}\n${error ?? ''}`);
}
