// Apache Kafka as a folder of jars (31 MB), downloaded by Maven and checked against pinned hashes. The broker
// and its tools run on the Java in the PATH.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { kafkaJars, kafkaVersion } from './engines-kafka-jars.ts';

const run = promisify(execFile);
/** For all jars, because a mirror may be slow. */
const timeoutMs = 600_000;
const javaMin = 17;

/** Returns the folder of the jars; existing jars are not downloaded again. */
export async function fetchKafka(folder: string): Promise<string> {
  await checkJava();
  const home = join(folder, `kafka-${kafkaVersion}`);
  if (existsSync(home)) return home;
  console.log(`downloading Kafka ${kafkaVersion} (${Object.keys(kafkaJars).length} jars)…`);
  // An interrupted download must not be used as a broker.
  const fresh = `${home}.${process.pid}`;
  try {
    await fetchJars(fresh);
    for (const [coordinate, sha256] of Object.entries(kafkaJars)) {
      const bytes = readFileSync(join(fresh, jarOf(coordinate)));
      const found = createHash('sha256').update(bytes).digest('hex');
      if (found !== sha256) throw new Error(`${jarOf(coordinate)} has the wrong SHA-256: ${found}`);
    }
    renameSync(fresh, home);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  return home;
}

async function fetchJars(into: string): Promise<void> {
  mkdirSync(into, { recursive: true });
  const pom = join(into, 'pom.xml');
  writeFileSync(pom, pomOf(Object.keys(kafkaJars)));
  const flags = ['-DexcludeTransitive=true', `-DoutputDirectory=${into}`];
  try {
    await run('mvn', ['-B', '-q', '-f', pom, 'dependency:copy-dependencies', ...flags], {
      timeout: timeoutMs,
    });
  } catch (error) {
    const { code, stdout } = error as { readonly code?: unknown; readonly stdout?: string };
    if (code === 'ENOENT')
      throw new Error('mvn is not on the PATH (Debian: maven)', { cause: error });
    throw new Error(`Maven could not download the jars: ${stdout?.split('\n')[0] ?? ''}`, {
      cause: error,
    });
  }
}

/** `org/apache/kafka/kafka_2.13/4.3.1` → group, artifact and version. */
function pomOf(coordinates: readonly string[]): string {
  const dependencies = coordinates.map((coordinate) => {
    const [group, artifact] = [dirname(dirname(coordinate)), basename(dirname(coordinate))];
    const id = `<groupId>${group.replaceAll('/', '.')}</groupId><artifactId>${artifact}</artifactId>`;
    return `<dependency>${id}<version>${basename(coordinate)}</version></dependency>`;
  });
  const own = '<groupId>millrace</groupId><artifactId>engines</artifactId><version>1</version>';
  return `<project><modelVersion>4.0.0</modelVersion>${own}<dependencies>${dependencies.join('')}</dependencies></project>`;
}

/** `org/apache/kafka/kafka_2.13/4.3.1` → `kafka_2.13-4.3.1.jar` */
function jarOf(coordinate: string): string {
  return `${basename(dirname(coordinate))}-${basename(coordinate)}.jar`;
}

async function checkJava(): Promise<void> {
  const output = await run('java', ['-version']).then(
    ({ stderr }) => stderr,
    () => {
      throw new Error('java is not on the PATH (https://adoptium.net)');
    },
  );
  const version = Number(/version "(\d+)/.exec(output)?.[1] ?? 0);
  if (version < javaMin)
    throw new Error(`Java ${javaMin} or newer is needed; the java on the PATH is ${version}`);
}
