// Errors about groups, with the texts that official clients parse.

import { RpcError, status } from '../rpc-error.ts';
import type { GroupKey } from './group-records.ts';
import type { Address } from './leadership.ts';

const names = ({ source, group }: GroupKey): Readonly<Record<string, string>> => ({
  'stream-name': source,
  'group-name': group,
});

export function groupMissing(key: GroupKey): RpcError {
  return new RpcError(`Subscription group ${key.group} on stream ${key.source} does not exist.`, {
    status: status.notFound,
    exception: 'persistent-subscription-does-not-exist',
    trailers: names(key),
  });
}

export function groupExists(key: GroupKey): RpcError {
  return new RpcError(`Subscription group ${key.group} on stream ${key.source} exists.`, {
    status: status.alreadyExists,
    exception: 'persistent-subscription-exists',
    trailers: names(key),
  });
}

export function groupDropped(key: GroupKey): RpcError {
  return new RpcError(`Subscription group ${key.group} on stream ${key.source} was dropped.`, {
    status: status.cancelled,
    exception: 'persistent-subscription-dropped',
    trailers: names(key),
  });
}

export function groupIsFull(key: GroupKey): RpcError {
  return new RpcError(
    `Maximum subscriptions reached for subscription group ${key.group} on stream ${key.source}.`,
    {
      status: status.failedPrecondition,
      exception: 'maximum-subscribers-reached',
      trailers: names(key),
    },
  );
}

export function groupFailed(key: GroupKey, reason: string): RpcError {
  return new RpcError(
    `Subscription group ${key.group} on stream ${key.source} failed: '${reason}'`,
    {
      status: status.internal,
      exception: 'persistent-subscription-failed',
      trailers: { ...names(key), reason },
    },
  );
}

/** Clients reconnect to the named leader; without one they retry later. */
export function notLeader(leader: Address | undefined): RpcError {
  const about = 'another server runs the persistent subscriptions';
  if (leader === undefined) {
    return new RpcError(`${about}; the election is in progress`, { status: status.unavailable });
  }
  return new RpcError(`${about}: ${leader.host}:${leader.port}`, {
    status: status.notFound,
    exception: 'not-leader',
    trailers: {
      'leader-endpoint-host': leader.host,
      'leader-endpoint-port': String(leader.port),
    },
  });
}
