// The part of the stand-in between the server and its clients: refuses, delays, drops and changes gRPC messages.

import {
  Metadata,
  ServerInterceptingCall,
  status,
  type ServerInterceptor,
  type StatusObject,
} from '@grpc/grpc-js';
import { toCount } from '../../server/kurrent/protocol/wire-number.ts';
import type {
  WireBatchRequest,
  WireBatchResponse,
  WireReadRequest,
  WireReadResponse,
} from '../../server/kurrent/protocol/streams-messages.ts';
import type { BytePositions } from './byte-positions.ts';
import type { Fidelity } from './fidelity.ts';
import type { RecordLog } from './record-log.ts';

/** What the interception knows about its node. */
export interface WireNode {
  readonly fidelity: Fidelity;
  readonly positions: BytePositions;
  readonly log: RecordLog;
  /** Counts this call; true: it is answered with "Server Is Not Ready". */
  refusesAsNotReady(): boolean;
  /** The address of the leader; undefined: this node leads. */
  otherLeader(): { readonly host: string; readonly port: number } | undefined;
  /** The members for a client with this user agent; undefined: there is no cluster. */
  readonly gossip: (userAgent: string) => readonly object[] | undefined;
  /** Runs the work at once, or when the node is no longer frozen. */
  readonly unlessFrozen: (work: () => void) => void;
}

const streams = '/event_store.client.streams.Streams';
const readPath = `${streams}/Read`;
const batchPath = `${streams}/BatchAppend`;
const gossipPath = '/event_store.client.gossip.Gossip/Read';
const featuresPath = '/event_store.client.server_features.ServerFeatures/GetSupportedMethods';
const groupsPrefix = '/event_store.client.persistent_subscriptions.';
const v2Prefix = '/kurrentdb.protocol.v2.';

/** 2^64 − 1, which the wire has for "no position". */
const noPosition = { low: -1, high: -1, unsigned: true } as const;

type Listener = Parameters<ServerInterceptingCall['start']>[0];

export function wireFaults(node: WireNode): ServerInterceptor {
  return ({ path }, call) => new FaultyCall(call, path, node);
}

class FaultyCall extends ServerInterceptingCall {
  readonly #path: string;
  readonly #node: WireNode;
  readonly #read: ReadFaults;
  #userAgent = '';
  #isRefused = false;

  constructor(
    call: ConstructorParameters<typeof ServerInterceptingCall>[0],
    path: string,
    node: WireNode,
  ) {
    super(call);
    this.#path = path;
    this.#node = node;
    this.#read = new ReadFaults(node);
  }

  override start(listener: Listener): void {
    const { unlessFrozen } = this.#node;
    super.start({
      onReceiveMetadata: (metadata) => {
        this.#userAgent = metadata.get('user-agent').join(' ');
        unlessFrozen(() => {
          const refusal = this.#refusalOf(metadata);
          if (refusal === undefined) listener.onReceiveMetadata(metadata);
          else this.#refuse(refusal);
        });
      },
      onReceiveMessage: (message: unknown) => unlessFrozen(() => this.#receive(message, listener)),
      onReceiveHalfClose: () =>
        unlessFrozen(() => {
          if (!this.#isRefused) listener.onReceiveHalfClose();
        }),
      onCancel: () => listener.onCancel(),
    });
  }

  override sendMessage(message: unknown, callback: () => void): void {
    this.#node.unlessFrozen(() => {
      const messages = this.#toSend(message);
      if (messages.length === 0) callback();
      for (const [index, each] of messages.entries()) {
        super.sendMessage(each, index === messages.length - 1 ? callback : () => undefined);
      }
    });
  }

  override sendStatus(sent: Parameters<ServerInterceptingCall['sendStatus']>[0]): void {
    this.#node.unlessFrozen(() => super.sendStatus(sent));
  }

  #refuse(refusal: StatusObject): void {
    this.#isRefused = true;
    this.sendStatus(refusal);
  }

  #refusalOf(metadata: Metadata): StatusObject | undefined {
    if (this.#path === gossipPath || this.#path === featuresPath) return undefined;
    if (this.#path.startsWith(v2Prefix))
      return refusalWith(status.UNIMPLEMENTED, 'Method not found');
    const leader = this.#node.otherLeader();
    const needsLeader =
      this.#path.startsWith(groupsPrefix) || metadata.get('requires-leader').includes('true');
    if (leader !== undefined && needsLeader) return notLeader(leader);
    // Batches are refused one by one, because their call stays open.
    if (this.#path === batchPath || !this.#node.refusesAsNotReady()) return undefined;
    return refusalWith(status.UNAVAILABLE, notReady);
  }

  #receive(message: unknown, listener: Listener): void {
    if (this.#isRefused) return;
    if (this.#path === batchPath) return this.#receiveBatch(message as WireBatchRequest, listener);
    if (this.#path !== readPath && !this.#path.startsWith(groupsPrefix)) {
      return listener.onReceiveMessage(message);
    }
    const read = this.#read.receive(message as WireReadRequest);
    if ('code' in read) this.#refuse(read);
    else listener.onReceiveMessage(read);
  }

  #receiveBatch(request: WireBatchRequest, listener: Listener): void {
    if (!request.isFinal || !this.#node.refusesAsNotReady()) {
      return listener.onReceiveMessage(request);
    }
    const { correlationId, options } = request;
    const value = Buffer.alloc(0);
    const details = { typeUrl: 'type.googleapis.com/google.protobuf.Empty', value };
    const response: WireBatchResponse = {
      correlationId,
      streamIdentifier: options?.streamIdentifier,
      error: { code: status.UNKNOWN, message: notReady, details },
    };
    super.sendMessage(response, () => undefined);
    this.startRead();
  }

  #toSend(message: unknown): readonly unknown[] {
    const { fidelity, gossip } = this.#node;
    if (this.#path === gossipPath)
      return [{ members: gossip(this.#userAgent) ?? members(message) }];
    if (this.#path === featuresPath) return [features(message as Features, fidelity)];
    const kept =
      this.#path === readPath ? this.#read.toSend(message as WireReadResponse) : [message];
    return kept.map((each) => this.#withPositions(each));
  }

  #withPositions(message: unknown): unknown {
    if (typeof message !== 'object' || message === null || message instanceof Uint8Array) {
      return message;
    }
    if (Array.isArray(message)) return message.map((each) => this.#withPositions(each));
    return Object.fromEntries(
      Object.entries(message).map(([name, value]: [string, unknown]) => {
        if (name === 'position' && isPosition(value) && value.commitPosition === 0) {
          return [name, undefined];
        }
        const isOffset = name === 'commitPosition' || name === 'preparePosition';
        if (!isOffset) return [name, this.#withPositions(value)];
        return [name, typeof value === 'number' ? this.#node.positions.ofSequence(value) : value];
      }),
    );
  }
}

/** The faults of one read or subscription. */
class ReadFaults {
  readonly #node: WireNode;
  #isCatchingUp = false;
  #skipsFirst = false;
  /** The checkpoints that the server sends before anything else. */
  #early: readonly object[] = [];

  constructor(node: WireNode) {
    this.#node = node;
  }

  /** The request with positions as sequences, or its refusal. */
  receive(request: WireReadRequest): WireReadRequest | StatusObject {
    const { options } = request;
    const { fidelity, log, positions } = this.#node;
    const isSubscription = options?.subscription !== undefined;
    const isFiltered = options?.filter !== undefined && options.filter !== null;
    this.#isCatchingUp = isSubscription;
    const given = options?.all?.position;
    if (isSubscription && isFiltered && options.all !== undefined && fidelity.earlyCheckpoints) {
      this.#early = [{ commitPosition: noPosition, preparePosition: noPosition }];
    }
    if (options?.all === undefined || given === undefined || given === null) return request;
    const position = toCount(given.commitPosition);
    if (position === Number.MAX_SAFE_INTEGER) return request;
    const { sequence, isRecord } = positions.locate(position, log.head);
    if (!isRecord && fidelity.refusesForeignPositions && sequence >= log.scavengedUpTo) {
      return refusalWith(status.UNAVAILABLE, 'Something is seriously wrong in the log');
    }
    const isAbsent = sequence > 0 && (!isRecord || log.rowAt(sequence) === undefined);
    this.#skipsFirst = fidelity.skipsFirstEvent && isFiltered && isSubscription && isAbsent;
    if (this.#early.length > 0) {
      this.#early = [{ commitPosition: sequence, preparePosition: sequence }, ...this.#early];
    }
    // Reads start at the position, and subscriptions after it.
    const start = isRecord || isSubscription ? sequence : sequence + 1;
    const at = { commitPosition: start, preparePosition: start };
    return { ...request, options: { ...options, all: { ...options.all, position: at } } };
  }

  toSend(message: WireReadResponse): readonly object[] {
    const { event, confirmation, caughtUp } = message;
    if (event !== undefined && this.#isCatchingUp && this.#skipsFirst) {
      this.#skipsFirst = false;
      return [];
    }
    if (caughtUp !== undefined) this.#isCatchingUp = false;
    const sent = this.#node.fidelity.plainProgress ? plain(message) : message;
    const early = confirmation === undefined ? [] : this.#early;
    return [sent, ...early.map((checkpoint) => ({ checkpoint }))];
  }
}

function plain(message: WireReadResponse): WireReadResponse {
  if (message.caughtUp !== undefined) return { caughtUp: {} };
  if (message.fellBehind !== undefined) return { fellBehind: {} };
  if (message.checkpoint === undefined) return message;
  const { commitPosition, preparePosition } = message.checkpoint;
  return { checkpoint: { commitPosition, preparePosition } };
}

const notReady = 'Server Is Not Ready';

function refusalWith(code: status, details: string): StatusObject {
  return { code, details, metadata: new Metadata() };
}

function notLeader({ host, port }: { readonly host: string; readonly port: number }): StatusObject {
  const refused = refusalWith(status.NOT_FOUND, 'Leader info available');
  refused.metadata.set('exception', 'not-leader');
  refused.metadata.set('leader-endpoint-host', host);
  refused.metadata.set('leader-endpoint-port', String(port));
  return refused;
}

interface Features {
  readonly methods: readonly { readonly serviceName: string }[];
}

function features({ methods }: Features, { version }: Fidelity): object {
  return {
    methods: methods.filter(({ serviceName }) => !`/${serviceName}`.startsWith(v2Prefix)),
    eventStoreServerVersion: version,
  };
}

function members(message: unknown): unknown {
  return (message as { readonly members: unknown }).members;
}

function isPosition(value: unknown): value is { readonly commitPosition: unknown } {
  return typeof value === 'object' && value !== null && 'commitPosition' in value;
}
