// `npm test`: every check and every test file. `npm test -- --help` lists the options.

import { hostSharedServers } from '../src/testing/servers/shared-servers.ts';
import { bundleChildren } from './test-run/bundle-children.ts';
import { readLastRun, writeLastRun } from './test-run/last-run.ts';
import { printSummary } from './test-run/summary.ts';
import { findTestFiles, isHeavy, selectTestFiles } from './test-run/test-files.ts';
import { keepTestFilesInMemory } from './test-run/test-folder.ts';
import { parseTestOptions, usage, type TestOptions } from './test-run/test-options.ts';
import { runTests, type Check } from './test-run/test-run.ts';
import { root } from './test-run/test-worker.ts';

/** Long files, which start first because the run would otherwise wait for them last. */
const longest = [
  'test/console/',
  'test/security/memory.',
  'test/packed-package.',
  'test/kurrent/adapter-on-memory.',
  'test/store/postgres-order.',
  'test/tasks/busy.',
  'test/tasks/kill-servers.',
  'test/projections/redis-outage.',
  'redis/bus/cluster.',
  'redis/tasks/cluster.',
  'src/engines/postgres/',
  'src/engines/sqlite/',
];

/**
 * The two official clients of KurrentDB declare their messages in one global namespace of
 * google-protobuf, where the one that is loaded last replaces the other.
 */
const isAlone = (file: string): boolean => /eventstore-client|kurrent\/many-clients/.test(file);

/** An unchanged tree is checked in a third of the time. */
const incremental = (name: string): readonly string[] => [
  '--incremental',
  '--tsBuildInfoFile',
  `node_modules/.cache/millrace-test/${name}.tsbuildinfo`,
];

const options = readOptions();

const checks: readonly Check[] = [
  // Two cores: more checkers would each load the same types again.
  {
    name: 'types',
    command: ['tsc', '-p', '.', '--checkers', '1', ...incremental('all')],
  },
  {
    name: 'console types',
    command: ['tsc', '-p', 'console', '--checkers', '1', ...incremental('console')],
  },
  { name: 'lint', command: ['node', 'tools/lint.ts', ...(options.fast ? ['--changed'] : [])] },
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'dead exports', command: ['knip', '--no-progress'] },
];

const lastRun = readLastRun();
const files = selectTestFiles(findTestFiles(), { ...options, failedBefore: lastRun.failed });
const isWhole = options.words.length === 0 && options.engines === undefined;
const seconds = (name: string): number => lastRun.seconds[name] ?? (isHeavy(name) ? 3 : 0.3);
const isLong = (file: string): boolean => longest.some((word) => file.includes(word));

keepTestFilesInMemory();
if (isWhole && !options.fast) Object.assign(process.env, await bundleChildren(root));
const startedAt = performance.now();
const servers = files.some(isHeavy) ? await hostSharedServers() : undefined;
try {
  const results = await runTests({
    // More slots than cores, because tests with servers wait much of their time.
    slots: options.fast ? 3 : 4,
    // Ends only a file that hangs: the slowest one takes 10 s, and 4 minutes on a machine that is 20 times slower.
    fileTimeoutMs: 600_000,
    titles: options.titles,
    bail: options.bail,
    command: 'npm test --',
    checks: checks.filter(({ name }) =>
      options.rerunFailed ? lastRun.failed.includes(name) : isWhole,
    ),
    files: [...files.filter(isLong), ...files.filter((file) => !isLong(file))],
    expectedSeconds: seconds,
    isAlone,
  });
  writeLastRun(lastRun, results);
  printSummary(results, {
    startedAt,
    showsBudget: isWhole && !options.fast && !options.rerunFailed,
  });
} finally {
  await servers?.[Symbol.asyncDispose]();
}

function readOptions(): TestOptions {
  const args = process.argv.slice(2);
  try {
    if (!args.includes('--help')) return parseTestOptions(args);
    console.log(usage);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exitCode = 2;
  }
  return process.exit();
}
