// Apache Kafka as a folder of jars from Maven Central (31 MB), each checked against its pinned hash. The
// broker and its tools are run by the Java that is on the PATH.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { kafkaJars, kafkaVersion } from './engines-kafka-jars.ts';

const repository = 'https://repo1.maven.org/maven2';
/** Of one jar; a mirror may be slow. */
const timeoutMs = 180_000;
const javaMin = 17;

/** The folder of its jars; what is there already is not fetched again. */
export async function fetchKafka(folder: string): Promise<string> {
  await checkJava();
  const home = join(folder, `kafka-${kafkaVersion}`);
  mkdirSync(home, { recursive: true });
  const missing = Object.entries(kafkaJars).filter(
    ([place]) => !existsSync(join(home, jarOf(place))),
  );
  if (missing.length > 0) console.log(`fetching Kafka ${kafkaVersion} (${missing.length} jars)…`);
  for (const [place, sha256] of missing) {
    const bytes = await fetchJar(`${repository}/${place}/${jarOf(place)}`);
    const found = createHash('sha256').update(bytes).digest('hex');
    if (found !== sha256) throw new Error(`${jarOf(place)} is not what was pinned: ${found}`);
    const path = join(home, jarOf(place));
    // A download that was cut short must not pass for a jar.
    writeFileSync(`${path}.${process.pid}`, bytes);
    renameSync(`${path}.${process.pid}`, path);
  }
  return home;
}

/** `org/apache/kafka/kafka_2.13/4.3.1` → `kafka_2.13-4.3.1.jar` */
function jarOf(place: string): string {
  return `${basename(dirname(place))}-${basename(place)}.jar`;
}

async function fetchJar(url: string): Promise<Buffer> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  } catch (error) {
    throw new Error(`Maven Central is not reached: ${url}: ${String(error)}`, { cause: error });
  }
}

async function checkJava(): Promise<void> {
  const said = await promisify(execFile)('java', ['-version']).then(
    ({ stderr }) => stderr,
    () => {
      throw new Error('java is not on the PATH (https://adoptium.net)');
    },
  );
  const version = Number(/version "(\d+)/.exec(said)?.[1] ?? 0);
  if (version < javaMin) throw new Error(`Java ${javaMin} is needed, and java is ${version}`);
}
