// What clients ask about the server before they trust it: its methods and version, its cluster.

import { idFromKey } from '../../foundation/ids.ts';
import type { CallKit } from './calls.ts';
import type { Address, Member } from './persistent/leadership.ts';
import type { Method, Services } from './services.ts';

export interface Cluster {
  /** This server's, known once it listens. */
  readonly where: () => Address;
  /** Those who take part in running persistent subscriptions; none before somebody asked for one. */
  readonly members: () => readonly Member[];
}

/** The version of the protocol that is spoken; clients compare it with what their calls need. */
const serverVersion = '25.1.0';

/** The protocol's numbers. A cluster of one is led by its only member. */
const states = { follower: 6, leader: 8 } as const;

interface SupportedMethod {
  readonly serviceName: string;
  readonly methodName: string;
  readonly features: readonly string[];
}

/** Clients compare names in lower case, and some of them do not lower ours. */
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

/** Also while the lead is not settled, this one answers. */
function clusterOf({ where, members }: Cluster): readonly Member[] {
  const all = members();
  if (all.some(({ isLeader }) => isLeader)) return all;
  return [{ address: where(), isLeader: true }];
}
