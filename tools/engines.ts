// `npm run test:engines`: tests with larger real engines than `npm test`. Downloads them into
// .millrace/engines/, names those that are not available, and runs all *.engines.test.ts.

import { globSync } from 'node:fs';
import { MongoClient } from 'mongodb';
import { fetchFerretdb } from './engines-ferretdb.ts';
import { kafkaVersion } from './engines-kafka-jars.ts';
import { fetchKafka } from './engines-kafka.ts';
import { fetchNtfy } from './engines-ntfy.ts';
import { printSummary } from './test-run/summary.ts';
import { parseEngineTestOptions } from './test-run/test-options.ts';
import { runTests } from './test-run/test-run.ts';
import { root } from './test-run/test-worker.ts';

/** An engine that the tests start, from the program or folder in this environment variable. */
interface Engine {
  readonly name: string;
  readonly variable: string;
  /** Parts of the paths of its test files. */
  readonly tests: readonly string[];
  /** Returns the path; rejects with a sentence if the engine is not available here. */
  readonly fetch: (folder: string) => Promise<string>;
}

const engines: readonly Engine[] = [
  {
    name: 'FerretDB 1.24.0',
    variable: 'MILLRACE_ENGINE_FERRETDB',
    tests: ['mongodb', 'stacks'],
    fetch: fetchFerretdb,
  },
  {
    name: `Kafka ${kafkaVersion}`,
    variable: 'MILLRACE_ENGINE_KAFKA',
    tests: ['kafka'],
    fetch: fetchKafka,
  },
  { name: 'ntfy', variable: 'MILLRACE_ENGINE_NTFY', tests: ['ntfy'], fetch: fetchNtfy },
];

/** Servers that only their owner can provide, as a URL in the environment. */
interface GivenServer {
  readonly name: string;
  readonly variable: string;
  /** Rejects with the reason if the server does not respond; by default the tests find out. */
  readonly ping?: (url: string) => Promise<void>;
}

const givenServers: readonly GivenServer[] = [
  { name: 'MongoDB', variable: 'MILLRACE_TEST_MONGODB', ping: pingMongodb },
  { name: 'KurrentDB', variable: 'MILLRACE_TEST_KURRENTDB' },
];

const { words: picked, titles, stress } = parseEngineTestOptions(process.argv.slice(2));

// Fetches only the engines of the requested tests, because fetching takes minutes.
const isWanted = ({ tests }: Engine): boolean =>
  picked.length === 0 ||
  picked.some((word) => tests.some((part) => word.includes(part) || part.includes(word)));
for (const { name, variable, fetch } of engines.filter(isWanted)) {
  if (process.env[variable] !== undefined) continue;
  try {
    process.env[variable] = await fetch(`${root}.millrace/engines`);
    console.log(`✓ ${name}`);
  } catch (error) {
    console.log(`– ${name} is not available: ${(error as Error).message}`);
  }
}
for (const { name, variable, ping } of givenServers) {
  const url = process.env[variable];
  if (url === undefined) {
    console.log(`– ${name}: ${variable} is not set`);
    continue;
  }
  try {
    await ping?.(url);
    console.log(`✓ ${name} (${variable})`);
  } catch (error) {
    // A requested engine that is missing fails the run, although the other tests run.
    console.log(
      `✗ ${name}: the server of ${variable} does not respond: ${(error as Error).message}`,
    );
    delete process.env[variable];
    process.exitCode = 1;
  }
}

const files = globSync('{src,test}/**/*.engines.test.ts', { cwd: root })
  .filter((file) => picked.length === 0 || picked.some((word) => file.includes(word)))
  .toSorted();
// Each engine is a server, so the files run one after the other instead of competing.
const minutes = stress ? 60 : 20;
const startedAt = performance.now();
const results = await runTests({
  slots: 1,
  fileTimeoutMs: minutes * 60_000,
  files,
  titles,
  isAlone: () => true,
  showsNotes: true,
  command: 'npm run test:engines --',
});
printSummary(results, { startedAt });

async function pingMongodb(url: string): Promise<void> {
  await using client = new MongoClient(url, { serverSelectionTimeoutMS: 10_000 });
  await client.db('admin').command({ ping: 1 });
}
