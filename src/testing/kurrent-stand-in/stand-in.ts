// A stand-in for a real EventStoreDB in tests: our own KurrentDB-protocol server over a log of records, with the
// behaviour of a real server as switches (`fidelity.ts`). It is not reachable from `millrace start`.

import { systemClock, type Clock } from '../../foundation/clock.ts';
import { idFromKey } from '../../foundation/ids.ts';
import type { Access } from '../../server/kurrent/access.ts';
import { kurrentStoreOptions, type KurrentServer } from '../../server/kurrent/index.ts';
import { startInterceptedServer } from '../../server/kurrent/start-kurrent-server.ts';
import { createEventStore } from '../../store/create-event-store.ts';
import type { EventStore } from '../../store/event-store.ts';
import { reservePort, type ReservedPort } from '../servers/reserve-port.ts';
import { createBytePositions, densePositions } from './byte-positions.ts';
import { presets, type Fidelity, type Preset } from './fidelity.ts';
import { createLogEngine, createLogWriter } from './log-engine.ts';
import {
  appendEntries,
  readEntries,
  RecordLog,
  type LogEntry,
  type LogRecord,
} from './record-log.ts';
import { wireFaults, type WireNode } from './wire-faults.ts';

/** A real server protects no stream from an administrator, nor from anybody if it is insecure. */
const access: Access = {
  identify: async () => ({ scopes: ['admin'] }),
  check: async () => undefined,
  checkGroup: async () => undefined,
  mayRead: async () => true,
  visible: () => undefined,
};

export interface StandInOptions {
  readonly preset: Preset;
  /** Replaces switches of the preset. */
  readonly switches?: Partial<Fidelity> | undefined;
  /** Keeps the log in a file, for a process that a test kills. Default: in memory. */
  readonly file?: string | undefined;
  /** The ports of the nodes. Default: free ports. */
  readonly ports?: readonly number[] | undefined;
  /** The clock of the log; deadlines of clients need the real time. */
  readonly clock?: Clock | undefined;
}

export interface StandIn extends AsyncDisposable {
  /** The connection string, with all nodes. */
  readonly url: string;
  readonly nodes: readonly StandInNode[];
  /** The log of the leader, for assertions. */
  readonly store: EventStore;
  /** The byte offset of a record on the wire. */
  positionOf(sequence: number): number;
  /** Removes hidden records on all nodes, and returns how many. */
  scavenge(): number;
  /** Makes this node the leader, with everything that was written. */
  elect(index: number): void;
  /** Stops and starts all nodes on the same ports, with the same data. */
  restart(): Promise<void>;
  /** Stops all nodes; `restart` starts them again. */
  stop(): Promise<void>;
  /** Appends are written, but not indexed and not answered, until the returned function is called. */
  holdIndex(): () => void;
  /** The number of calls that were answered with "Server Is Not Ready". */
  readonly refusedCalls: number;
  /** All calls are answered with "Server Is Not Ready" until the returned function is called. */
  holdReady(): () => void;
}

interface StandInNode {
  readonly url: string;
  /** Keeps new records from this follower until the returned function is called. */
  holdReplication(): () => void;
  /** The node keeps its connections and answers nothing until the returned function is called. */
  freeze(): () => void;
}

interface Node extends StandInNode {
  readonly log: RecordLog;
  readonly store: EventStore;
  readonly address: { readonly host: string; readonly port: number };
  replicate(entries: readonly LogEntry[]): void;
  readonly unlessFrozen: WireNode['unlessFrozen'];
  release(): void;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  const { file, clock = systemClock } = options;
  const fidelity: Fidelity = { ...presets[options.preset], ...options.switches };
  const positions = fidelity.bytePositions ? createBytePositions() : densePositions;
  const stack = new AsyncDisposableStack();
  const nodes: Node[] = [];
  const saved = file === undefined ? [] : readEntries(file);
  let leader = 0;
  let refusable = fidelity.notReadyCalls;
  let isReadyHeld = false;
  let refusedCalls = 0;

  const leading = (): Node => nodes[leader] as Node;
  const store = (entries: readonly LogEntry[]): void => {
    if (file !== undefined) appendEntries(file, entries);
    for (const node of nodes) node.replicate(entries);
  };
  const commit = (records: readonly LogRecord[]): void =>
    store(records.map((record) => ({ record })));
  const writers = new Map<Node, ReturnType<typeof createLogWriter>>();
  const writer = (): ReturnType<typeof createLogWriter> => {
    const node = leading();
    const known = writers.get(node) ?? createLogWriter({ log: node.log, commit, fidelity, clock });
    writers.set(node, known);
    return known;
  };
  const refusesAsNotReady = (): boolean => {
    if (!isReadyHeld && refusable === 0) return false;
    if (!isReadyHeld) refusable -= 1;
    refusedCalls += 1;
    return true;
  };

  const gossipFor = (userAgent: string): readonly object[] => {
    const followers = nodes.filter((node) => node !== leading());
    const only = followers.at(userAgent.includes('grpc-node-js') ? 0 : -1);
    return nodes.map((node) => ({
      instanceId: { string: idFromKey(node.url) },
      timeStamp: clock.now(),
      state: node === leading() ? states.leader : states.follower,
      isAlive: !fidelity.splitsConnections || node === only,
      httpEndPoint: { address: node.address.host, port: node.address.port },
    }));
  };

  function createNode(index: number, { host, port }: ReservedPort | Node['address']): Node {
    const log = new RecordLog();
    log.add(saved);
    const engine = createLogEngine(log, async (write) => {
      await new Promise<void>((resolve) => leading().unlessFrozen(resolve));
      return writer().write(write);
    });
    const ownStore = createEventStore(engine, { ...kurrentStoreOptions, clock });
    const backlog: LogEntry[] = [];
    const waiting: (() => void)[] = [];
    let isHeld = false;
    let isFrozen = false;
    let server: KurrentServer | undefined;
    const release = (): void => {
      isHeld = false;
      if (backlog.length > 0) log.add(backlog.splice(0));
    };
    const thaw = (): void => {
      isFrozen = false;
      for (const work of waiting.splice(0)) work();
    };
    const unlessFrozen = (work: () => void): void => {
      if (isFrozen) waiting.push(work);
      else work();
    };
    const wire: WireNode = {
      fidelity,
      positions,
      log,
      refusesAsNotReady,
      otherLeader: () => (leader === index ? undefined : leading().address),
      gossip: (userAgent) => (nodes.length > 1 ? gossipFor(userAgent) : undefined),
      unlessFrozen,
    };
    return {
      log,
      store: ownStore,
      address: { host, port },
      url: urlOf([{ host, port }]),
      replicate(entries) {
        if (isHeld && leader !== index) backlog.push(...entries);
        else log.add(entries);
      },
      unlessFrozen,
      release,
      holdReplication() {
        isHeld = true;
        return release;
      },
      freeze() {
        isFrozen = true;
        return thaw;
      },
      async start() {
        // A crash does not wait for calls, and an append of the conformance suite exceeds the default size.
        const limits = { stopMsMax: 1, appendBytesMax: 64 * 1_048_576 };
        const settings = { host, port, limits };
        const interceptors = [wireFaults(wire)];
        server = await startInterceptedServer(ownStore, settings, { interceptors, access });
      },
      async stop() {
        thaw();
        await server?.[Symbol.asyncDispose]();
        server = undefined;
      },
    };
  }

  for (let index = 0; index < fidelity.nodes; index += 1) {
    const port = options.ports?.[index];
    const address =
      port === undefined ? stack.use(await reservePort()) : { host: '127.0.0.1', port };
    nodes.push(createNode(index, address));
  }
  const stop = async (): Promise<void> => {
    for (const each of writers.values()) each.restart();
    await Promise.all(nodes.map((node) => node.stop()));
  };
  const start = async (): Promise<void> => {
    refusable = fidelity.notReadyCalls;
    for (const node of nodes) await node.start();
  };
  stack.defer(stop);
  await start();

  const preference = fidelity.splitsConnections ? '&nodePreference=follower' : '';
  return {
    url: `${urlOf(nodes.map(({ address }) => address))}${preference}`,
    nodes,
    get store() {
      return leading().store;
    },
    positionOf: (sequence) => positions.ofSequence(sequence),
    scavenge() {
      const removed = leading().log.hidden(clock.now());
      store([{ removed }]);
      return removed.length;
    },
    elect(index) {
      for (const node of nodes) node.release();
      leader = index;
    },
    async restart() {
      await stop();
      await start();
    },
    stop,
    holdIndex: () => writer().holdIndex(),
    get refusedCalls() {
      return refusedCalls;
    },
    holdReady() {
      isReadyHeld = true;
      return () => {
        isReadyHeld = false;
        refusable = 0;
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Numbers of the protocol. */
const states = { follower: 6, leader: 8 } as const;

/** Without the delay of the client's native connection before its first use. */
function urlOf(addresses: readonly { readonly host: string; readonly port: number }[]): string {
  const hosts = addresses.map(({ host, port }) => `${host}:${port}`).join(',');
  return `kurrentdb://${hosts}?tls=false&discoveryInterval=1`;
}
