// Information that clients request first: supported methods, version and cluster members.

import { idFromKey } from '../../foundation/ids.ts';
import type { CallKit } from './calls.ts';
import type { Address, Member } from './persistent/leadership.ts';
import { list, one } from './protocol/message.ts';
import { uuid } from './protocol/shared-messages.ts';
import type { Services } from './services.ts';

export interface Cluster {
  /** The address of this server, known after it listens. */
  readonly where: () => Address;
  /** The servers in the election for persistent subscriptions; empty before the first use of one. */
  readonly members: () => readonly Member[];
}

export const supportedMethodsResponse = {
  methods: list(1, {
    methodName: one(1, 'string'),
    serviceName: one(2, 'string'),
    features: list(3, 'string'),
  }),
  eventStoreServerVersion: one(2, 'string'),
};
const clusterInfo = {
  members: list(1, {
    instanceId: one(1, uuid),
    timeStamp: one(2, 'int64'),
    state: one(3, 'int32'),
    isAlive: one(4, 'bool'),
    httpEndPoint: one(5, { address: one(1, 'string'), port: one(2, 'uint32') }),
  }),
};

/** Clients compare this version with the one that their calls need. */
const serverVersion = '25.1.0';

/** Numbers of the protocol. */
const states = { follower: 6, leader: 8 } as const;

interface SupportedMethod {
  readonly serviceName: string;
  readonly methodName: string;
  readonly features: readonly string[];
}

/** In lower case, because some clients compare names without converting them. */
export function supportedMethods(services: Services): SupportedMethod[] {
  return Object.entries(services).flatMap(([serviceName, methods]) =>
    Object.entries(methods).map(([name, { features = [] }]) => ({
      serviceName: serviceName.toLowerCase(),
      methodName: name.toLowerCase(),
      features,
    })),
  );
}

export function serverServices(calls: CallKit, others: Services, cluster: Cluster): Services {
  const own: Services = {
    'event_store.client.server_features.ServerFeatures': {
      GetSupportedMethods: calls.anonymous(supportedMethodsResponse, () => ({
        methods: supportedMethods({ ...others, ...own }),
        eventStoreServerVersion: serverVersion,
      })),
    },
    'event_store.client.gossip.Gossip': {
      Read: calls.anonymous(clusterInfo, () => ({
        members: clusterOf(cluster).map(({ address: { host, port }, isLeader }) => ({
          instanceId: { string: idFromKey(`${host}:${port}`) },
          timeStamp: Date.now(),
          state: isLeader ? states.leader : states.follower,
          isAlive: true,
          httpEndPoint: { address: host, port },
        })),
      })),
    },
  };
  return own;
}

/** Before the election has a result, this server presents itself as the leader. */
function clusterOf({ where, members }: Cluster): readonly Member[] {
  const all = members();
  if (all.some(({ isLeader }) => isLeader)) return all;
  return [{ address: where(), isLeader: true }];
}
