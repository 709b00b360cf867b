// Information that clients request first: supported methods, version and cluster members.

import { idFromKey } from '../../foundation/ids.ts';
import type { CallKit } from './calls.ts';
import type { Address, Member } from './persistent/leadership.ts';
import type { Method, Services } from './services.ts';

export interface Cluster {
  /** The address of this server, known after it listens. */
  readonly where: () => Address;
  /** The servers in the election for persistent subscriptions; empty before the first use of one. */
  readonly members: () => readonly Member[];
}

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
      serviceName,
      methodName: name.toLowerCase(),
      features,
    })),
  );
}

export function serverServices(calls: CallKit, others: Services, cluster: Cluster): Services {
  const scope = 'event_store.client.server';
  const own: Services = {
    'event_store.client.server_features.ServerFeatures': {
      GetSupportedMethods: {
        request: 'event_store.client.Empty',
        response: `${scope}.SupportedMethods`,
        handler: calls.anonymous(async () => ({
          methods: supportedMethods({ ...others, ...own }),
          eventStoreServerVersion: serverVersion,
        })),
      } satisfies Method,
    },
    'event_store.client.gossip.Gossip': {
      Read: {
        request: 'event_store.client.Empty',
        response: `${scope}.ClusterInfo`,
        handler: calls.anonymous(async () => ({
          members: clusterOf(cluster).map(({ address: { host, port }, isLeader }) => ({
            instanceId: { string: idFromKey(`${host}:${port}`) },
            timeStamp: Date.now(),
            state: isLeader ? states.leader : states.follower,
            isAlive: true,
            httpEndPoint: { address: host, port },
          })),
        })),
      } satisfies Method,
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
