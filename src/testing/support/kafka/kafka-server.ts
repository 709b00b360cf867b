// A throwaway Kafka server on free ports: one node that is broker and controller (KRaft), run from the jars
// that tools/engines.ts downloaded.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Admin } from '@platformatic/kafka';
import { loopback, reservePort } from '../../servers/reserve-port.ts';
import { launchServer } from '../../servers/launch-server.ts';
import { runProgram } from '../../servers/run-program.ts';
import type { ServerProcess } from '../../servers/server-process.ts';
import { kafkaVersion } from '../../../../tools/engines-kafka-jars.ts';

export interface KafkaServer extends ServerProcess {
  /** `127.0.0.1:<port>` */
  readonly brokers: string;
  /** Another port of this broker, which requires a password (SASL PLAIN). */
  readonly guarded: {
    readonly brokers: string;
    readonly username: string;
    readonly password: string;
  };
  createTopic(topic: string, settings?: KafkaTopic): Promise<void>;
}

interface KafkaTopic {
  readonly partitions?: number | undefined;
  readonly configs?: Readonly<Record<string, string>> | undefined;
}

const fetched = fileURLToPath(
  new URL(`../../.millrace/engines/kafka-${kafkaVersion}`, import.meta.url),
);

/** Undefined if Kafka was not downloaded. */
export function kafkaJarFolder(): string | undefined {
  const path = process.env['MILLRACE_ENGINE_KAFKA'] ?? fetched;
  return existsSync(path) ? path : undefined;
}

export async function startKafka(jarFolder: string): Promise<KafkaServer> {
  // These flags make the broker start fast with little memory.
  const java = ['-XX:TieredStopAtLevel=1', '-Xmx256m', '-cp', join(jarFolder, '*')];
  const password = randomBytes(12).toString('hex');
  let guardedPort = 0;
  const server = await launchServer({ startTimeoutMs: 120_000 }, async ({ folder, port }) => {
    const file = join(folder, 'server.properties');
    ({ port: guardedPort } = await reservePort());
    const { port: controllerPort } = await reservePort();
    await writeFile(file, settingsOf({ folder, port, guardedPort, controllerPort, password }));
    const cluster = randomBytes(16).toString('base64url');
    const format = ['kafka.tools.StorageTool', 'format', '-t', cluster, '-c', file];
    await runProgram({ program: 'java', args: [...java, ...format], folder });
    return {
      name: 'kafka',
      program: 'java',
      args: [...java, 'kafka.Kafka', file],
      stopSignal: 'SIGTERM',
      discardSignal: 'SIGKILL',
      isReady: () => responds(`${loopback}:${port}`),
    };
  });
  const brokers = `${server.host}:${server.port}`;
  return Object.assign(server, {
    brokers,
    guarded: { brokers: `${server.host}:${guardedPort}`, username: 'outbox', password },
    async createTopic(topic: string, { partitions = 1, configs = {} }: KafkaTopic = {}) {
      const admin = new Admin({ clientId: 'tests', bootstrapBrokers: [brokers] });
      try {
        const given = Object.entries(configs).map(([name, value]) => ({ name, value }));
        await admin.createTopics({ topics: [topic], partitions, replicas: 1, configs: given });
      } finally {
        await admin.close();
      }
    },
  });
}

interface ServerSettings {
  readonly folder: string;
  readonly port: number;
  readonly guardedPort: number;
  readonly controllerPort: number;
  readonly password: string;
}

function settingsOf({
  folder,
  port,
  guardedPort,
  controllerPort,
  password,
}: ServerSettings): string {
  const open = `PLAINTEXT://${loopback}:${port},GUARDED://${loopback}:${guardedPort}`;
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@${loopback}:${controllerPort}
listeners=${open},CONTROLLER://${loopback}:${controllerPort}
advertised.listeners=${open}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_outbox="${password}";
log.dirs=${join(folder, 'data')}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
`;
}

async function responds(broker: string): Promise<boolean> {
  const admin = new Admin({
    clientId: 'tests',
    bootstrapBrokers: [broker],
    retries: 0,
    connectTimeout: 2_000,
    requestTimeout: 2_000,
  });
  try {
    await admin.metadata({ topics: [] });
    return true;
  } catch {
    return false;
  } finally {
    await admin.close();
  }
}
