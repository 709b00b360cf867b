// A temporary Redis Cluster: three masters that share all slots.

import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import { replyTo } from './converse.ts';
import { launchServerOn, serverDefaults } from './launch-server.ts';
import { redisLayout, withUrl, type RedisOptions, type RedisServer } from './redis-server.ts';
import { reservePort, type ReservedPort } from './reserve-port.ts';
import type { WaitOptions } from './server-process.ts';

/** The options of one Redis; the settings apply to every node. */
export type RedisClusterOptions = RedisOptions;

export interface RedisCluster extends AsyncDisposable {
  /** `redis://127.0.0.1:<port>` of every node. */
  readonly urls: readonly string[];
  /** Each node can be killed, paused and started separately. */
  readonly nodes: readonly RedisServer[];
  /** Starts the nodes that are down and waits until the cluster serves all slots. */
  start(options?: WaitOptions): Promise<void>;
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** Resolves when every node reports `cluster_state:ok`, also after a node was restarted. */
  whenOk(options?: WaitOptions): Promise<void>;
}

interface NodePlan {
  readonly id: string;
  readonly reserved: ReservedPort;
  readonly bus: ReservedPort;
  readonly slots: string;
}

const slotRanges = ['0-5460', '5461-10922', '10923-16383'];
// A restarted node rejects writes for two seconds, so faster polling does not help.
const pollIntervalMs = 100;

/**
 * Starts a Redis Cluster of three masters for a test. Takes two seconds: a Redis node rejects
 * writes for that long after its start.
 *
 * @example
 * import { startRedisCluster } from 'millrace/testing';
 *
 * await using cluster = await startRedisCluster();
 * console.log(cluster.nodes.map(({ host, port }) => ({ host, port })));
 */
export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const nodes = await launchNodes(options);
  const timeoutMs = options.startTimeoutMs ?? serverDefaults.startTimeoutMs;
  const cluster = createCluster(nodes, timeoutMs);
  try {
    await cluster.whenOk(options);
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

function createCluster(nodes: readonly RedisServer[], timeoutMs: number): RedisCluster {
  const whenOk = async ({ signal }: WaitOptions = {}): Promise<void> => {
    const deadline = performance.now() + timeoutMs;
    while (!(await Promise.all(nodes.map(isOk))).every(Boolean)) {
      if (performance.now() > deadline) throw notOk(nodes, timeoutMs);
      await systemClock.sleep(pollIntervalMs, signal);
    }
  };
  return {
    urls: nodes.map((node) => node.url),
    nodes,
    async start(options) {
      await Promise.all(nodes.map((node) => node.start(options)));
      await whenOk(options);
    },
    stop: () => inParallel(nodes, (node) => node.stop()),
    kill: () => inParallel(nodes, (node) => node.kill()),
    whenOk,
    [Symbol.asyncDispose]: () => inParallel(nodes, dispose),
  };
}

async function launchNodes(options: RedisClusterOptions): Promise<readonly RedisServer[]> {
  const plans: NodePlan[] = [];
  for (const slots of slotRanges) {
    const id = randomBytes(20).toString('hex');
    plans.push({ id, slots, reserved: await reservePort(), bus: await reservePort() });
  }
  const launches = await Promise.allSettled(plans.map((plan) => launchNode(plan, plans, options)));
  const nodes = launches.filter((each) => each.status === 'fulfilled').map((each) => each.value);
  const failure = launches.find((each) => each.status === 'rejected');
  if (failure === undefined) return nodes;
  await inParallel(nodes, dispose);
  await Promise.all(plans.map(({ bus }) => bus[Symbol.asyncDispose]()));
  throw failure.reason;
}

/** The nodes find each other by their configuration, as after a restart, without CLUSTER MEET. */
async function launchNode(
  self: NodePlan,
  all: readonly NodePlan[],
  options: RedisClusterOptions,
): Promise<RedisServer> {
  const settings = {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-port': String(self.bus.port),
    'cluster-node-timeout': '5000',
    ...options.settings,
  };
  const layOut = redisLayout({ ...options, settings });
  const server = await launchServerOn(self.reserved, options, async (address) => {
    await writeFile(join(address.folder, 'nodes.conf'), nodesFile(self, all));
    return layOut(address);
  });
  const disposeServer = server[Symbol.asyncDispose].bind(server);
  return withUrl(
    Object.assign(server, {
      async [Symbol.asyncDispose]() {
        await disposeServer();
        await self.bus[Symbol.asyncDispose]();
      },
    }),
  );
}

function nodesFile(self: NodePlan, all: readonly NodePlan[]): string {
  const lines = all.map(({ id, reserved, bus, slots }, index) => {
    const flags = id === self.id ? 'myself,master' : 'master';
    return `${id} ${reserved.host}:${reserved.port}@${bus.port} ${flags} - 0 0 ${index + 1} connected ${slots}\n`;
  });
  return `${lines.join('')}vars currentEpoch ${all.length} lastVoteEpoch 0\n`;
}

async function isOk(node: RedisServer): Promise<boolean> {
  const turn = { send: 'CLUSTER INFO\r\n', expect: /cluster_slots_ok:\d+\r\n/ };
  const reply = await replyTo(node.port, turn);
  return reply.includes('cluster_state:ok\r\n') && reply.includes('cluster_slots_ok:16384\r\n');
}

function notOk(nodes: readonly RedisServer[], timeoutMs: number): MillraceError {
  const logs = nodes.map((node) => `${node.url}\n${node.log()}`).join('\n');
  const message = `the Redis Cluster is not ok after ${timeoutMs} ms:\n${logs}`;
  return new MillraceError('SERVER_UNAVAILABLE', message, { details: { log: logs } });
}

async function inParallel(
  nodes: readonly RedisServer[],
  act: (node: RedisServer) => Promise<void>,
): Promise<void> {
  await Promise.all(nodes.map(act));
}

async function dispose(node: RedisServer): Promise<void> {
  await node[Symbol.asyncDispose]();
}
