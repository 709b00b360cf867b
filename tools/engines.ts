// `npm run test:engines`: heavier real engines than `npm test` asks for. Fetches what it can into
// .millrace/engines/, names what it could not, runs test/engines/*.engines.test.ts, one summary line.

import { globSync } from 'node:fs';
import { MongoClient } from 'mongodb';
import { fetchFerretdb } from './engines-ferretdb.ts';
import { kafkaVersion } from './engines-kafka-jars.ts';
import { fetchKafka } from './engines-kafka.ts';
import { fetchNtfy } from './engines-ntfy.ts';
import { printSummary } from './test-run/summary.ts';
import { runTests } from './test-run/test-run.ts';
import { root } from './test-run/test-worker.ts';

/** An engine that the tests start themselves, from the program or folder that the variable points to. */
interface Engine {
  readonly name: string;
  readonly variable: string;
  /** What the names of its test files hold. */
  readonly tests: string;
  /** Its path; rejects with a sentence when it is not to be had here. */
  readonly fetch: (folder: string) => Promise<string>;
}

const engines: readonly Engine[] = [
  {
    name: 'FerretDB 1.24.0',
    variable: 'MILLRACE_ENGINE_FERRETDB',
    tests: 'mongodb',
    fetch: fetchFerretdb,
  },
  {
    name: `Kafka ${kafkaVersion}`,
    variable: 'MILLRACE_ENGINE_KAFKA',
    tests: 'kafka',
    fetch: fetchKafka,
  },
  { name: 'ntfy', variable: 'MILLRACE_ENGINE_NTFY', tests: 'ntfy', fetch: fetchNtfy },
];

/** Servers that only their owner can give: a URL in the environment. */
interface GivenServer {
  readonly name: string;
  readonly variable: string;
  /** Rejects with the reason when the server does not answer; without it, the tests find out. */
  readonly ping?: (url: string) => Promise<void>;
}

const givenServers: readonly GivenServer[] = [
  { name: 'MongoDB', variable: 'MILLRACE_TEST_MONGODB', ping: pingMongodb },
  { name: 'KurrentDB', variable: 'MILLRACE_TEST_KURRENTDB' },
];

const picked = process.argv.slice(2).filter((word) => !word.startsWith('-'));

// Fetching one takes minutes: not those whose tests nobody asked for.
const isWanted = ({ tests }: Engine): boolean =>
  picked.length === 0 || picked.some((word) => word.includes(tests) || tests.includes(word));
for (const { name, variable, fetch } of engines.filter(isWanted)) {
  if (process.env[variable] !== undefined) continue;
  try {
    process.env[variable] = await fetch(`${root}.millrace/engines`);
    console.log(`✓ ${name}`);
  } catch (error) {
    console.log(`– ${name} could not be fetched: ${(error as Error).message}`);
  }
}
for (const { name, variable, ping } of givenServers) {
  const url = process.env[variable];
  if (url === undefined) {
    console.log(`– ${name}: ${variable} names no server`);
    continue;
  }
  try {
    await ping?.(url);
    console.log(`✓ ${name} (${variable})`);
  } catch (error) {
    // Somebody wanted it tested: the rest is run, but it does not pass for everything.
    console.log(
      `✗ ${name}: the server of ${variable} does not answer: ${(error as Error).message}`,
    );
    delete process.env[variable];
    process.exitCode = 1;
  }
}

const files = globSync('test/engines/**/*.engines.test.ts', { cwd: root })
  .filter((file) => picked.length === 0 || picked.some((word) => file.includes(word)))
  .toSorted();
// An engine is a server of its own: the files one after the other, or they would starve each other.
const minutes = process.argv.includes('--stress') ? 60 : 20;
const startedAt = performance.now();
const results = await runTests({
  lanes: 1,
  fileTimeoutMs: minutes * 60_000,
  files,
  isAlone: () => true,
  command: 'npm run test:engines --',
});
printSummary(results, { startedAt });

async function pingMongodb(url: string): Promise<void> {
  await using client = new MongoClient(url, { serverSelectionTimeoutMS: 10_000 });
  await client.db('admin').command({ ping: 1 });
}
