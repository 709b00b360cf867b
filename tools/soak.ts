// `npm run soak`: runs the tests with random faults in their long form, each for the given minutes.
// `-- store outbox` picks topics; `-- --all` runs every test file at its longest.

import { globSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { hostSharedServers } from '../src/testing/servers/shared-servers.ts';
import { installSchemathesis, schemathesisVariable } from './schemathesis.ts';
import { printSummary } from './test-run/summary.ts';
import { findTestFiles } from './test-run/test-files.ts';
import { keepTestFilesInMemory } from './test-run/test-folder.ts';
import { runTests } from './test-run/test-run.ts';
import { root } from './test-run/test-worker.ts';

const topics = {
  store: [
    'test/store/{kill,postgres-order,sqlite-processes,catch-up}*.test.ts',
    'test/kurrent/{adapter-on-engines,eventstore-client,leaks,lifecycle,many-clients,stand-in}*.test.ts',
  ],
  subscriptions: [
    'test/subscriptions/{kill,aggregates}*.test.ts',
    'test/{projections,sagas}/kill*.test.ts',
    'src/subscriptions/subscription-runner-model.test.ts',
  ],
  outbox: ['test/outbox/{kill,queue-kill,claims,archive}*.test.ts'],
  tasks: [
    'test/tasks/kill*.test.ts',
    'src/tasks/tasks-model.full.test.ts',
    'src/engines/{redis,nats}/{bus,tasks}/*.servers.test.ts',
  ],
  security: ['test/security/*.test.ts'],
  notify: [
    'test/scenarios/{collab-killed,payments-killed,notify-killed,notify-race,slack-killed,slack-cluster}*.test.ts',
  ],
} as const;

const usage = `usage: npm run soak -- [--minutes <N>] [--all | ${Object.keys(topics).join(' | ')}]…

  --minutes <N>   how long each test with random faults goes on (10, with --all 1)
  --all           every test file, at its longest`;

const { files, minutes } = readArguments();
if (files.some((file) => file.startsWith('test/security/'))) await prepareSchemathesis();
keepTestFilesInMemory();
const startedAt = performance.now();
const servers = await hostSharedServers();
try {
  const results = await runTests({
    slots: 2,
    fileTimeoutMs: minutes * 60_000 * 4 + 30 * 60_000,
    files,
    // The long forms also measure the memory of their process.
    isAlone: () => true,
    env: { MILLRACE_SOAK: String(minutes) },
    command: `MILLRACE_SOAK=${minutes} npm test --`,
  });
  printSummary(results, { startedAt });
} finally {
  await servers[Symbol.asyncDispose]();
}

async function prepareSchemathesis(): Promise<void> {
  try {
    process.env[schemathesisVariable] ??= await installSchemathesis();
    console.log('✓ schemathesis');
  } catch (error) {
    console.log(`– schemathesis is not available: ${(error as Error).message}`);
  }
}

function readArguments(): { readonly files: readonly string[]; readonly minutes: number } {
  try {
    const { values, positionals } = parseArgs({
      options: { all: { type: 'boolean', default: false }, minutes: { type: 'string' } },
      allowPositionals: true,
    });
    const unknown = positionals.find((word) => !Object.hasOwn(topics, word));
    if (unknown !== undefined) throw new TypeError(`Unknown topic "${unknown}".`);
    const given = Number(values.minutes ?? (values.all ? 1 : 10));
    if (!(given > 0)) throw new TypeError(`--minutes must be a positive number.`);
    if (values.all) return { files: findTestFiles(), minutes: given };
    const patterns = Object.entries(topics)
      .filter(([topic]) => positionals.length === 0 || positionals.includes(topic))
      .flatMap(([, globs]) => globs);
    return { files: globSync(patterns, { cwd: root }).toSorted(), minutes: given };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return process.exit(2);
  }
}
