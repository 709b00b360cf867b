// The methods of the PersistentSubscriptions service.

import type { CallInfo, CallKit } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import { toSequence } from '../../../store/position.ts';
import { toCount } from '../protocol/wire-number.ts';
import { badRequest } from '../refusal.ts';
import type { Services } from '../services.ts';
import { indexFilter } from '../streams/index-stream.ts';
import { streamNameOf } from '../streams/stream-name.ts';
import { groupInfo } from './group-info.ts';
import { keyOf } from './group-key.ts';
import type { GroupKey } from './group-records.ts';
import { groupMissing } from './group-refusals.ts';
import type { Group } from './group.ts';
import type { Groups } from './groups.ts';
import { planGroup } from './plan-group.ts';
import { readGroup } from './read-group.ts';
import type {
  WireGroup,
  WireGroupReadRequest,
  WireGroupReadResponse,
  WireGroupRequest,
  WireListRequest,
  WireReplayRequest,
  WireWriteRequest,
} from './wire-types.ts';

const scope = 'event_store.client.persistent_subscriptions';
const none = 'event_store.client.Empty';
const features = ['stream', 'all'];

export function persistentService(
  context: KurrentContext,
  groups: Groups,
  calls: CallKit,
): Services {
  const { access, store } = context;

  const allowed = (options: WireGroup | undefined, { identity }: CallInfo): GroupKey => {
    if (options === undefined) throw badRequest('the request has no options');
    const key = keyOf(options);
    access.checkGroup(identity, key.source, 'manage');
    return key;
  };
  const info = async (group: Group): Promise<object> => {
    const [parked, lastKnown] = await Promise.all([
      group.countParked(),
      lastNumber(group.key.source),
    ]);
    return groupInfo(group, { parked, lastKnown });
  };
  const lastNumber = async (source: string): Promise<number | undefined> => {
    if (source === '$all' || indexFilter(source) !== undefined) {
      return toSequence(await store.head());
    }
    const revision = (await store.streamInfo(source))?.revision ?? -1;
    return revision < 0 ? undefined : revision;
  };

  return {
    [`${scope}.PersistentSubscriptions`]: {
      Create: {
        request: `${scope}.WriteReq`,
        response: none,
        features,
        handler: calls.unary<WireWriteRequest, object>(async ({ options }, { identity }) => {
          const { key, settings } = await planGroup(store, options);
          access.checkGroup(identity, key.source, 'manage');
          await groups.create(key, settings);
          return {};
        }),
      },
      Update: {
        request: `${scope}.WriteReq`,
        response: none,
        features,
        handler: calls.unary<WireWriteRequest, object>(async ({ options }, { identity }) => {
          const { key, settings } = await planGroup(store, options);
          access.checkGroup(identity, key.source, 'manage');
          // A filter is given once, when the group is made.
          await groups.update(key, ({ filter }) => ({
            ...settings,
            ...(filter === undefined ? {} : { filter }),
          }));
          return {};
        }),
      },
      Delete: {
        request: `${scope}.DeleteReq`,
        response: none,
        features,
        handler: calls.unary<WireGroupRequest, object>(async ({ options }, call) => {
          await groups.remove(allowed(options, call));
          return {};
        }),
      },
      GetInfo: {
        request: `${scope}.GetInfoReq`,
        response: `${scope}.GetInfoResp`,
        features,
        handler: calls.unary<WireGroupRequest, object>(async ({ options }, call) => {
          const key = allowed(options, call);
          await groups.lead();
          return { subscriptionInfo: await info(groups.get(key)) };
        }),
      },
      List: {
        request: `${scope}.ListReq`,
        response: `${scope}.ListResp`,
        features,
        handler: calls.unary<WireListRequest, object>(async ({ options }, { identity }) => {
          const one = options?.listForStream;
          const source =
            one === undefined
              ? undefined
              : one.stream === undefined
                ? '$all'
                : streamNameOf(one.stream);
          access.checkGroup(identity, source ?? '$all', 'manage');
          await groups.lead();
          const found = groups.list(source);
          if (source !== undefined && found.length === 0) throw groupMissing({ source, group: '' });
          return { subscriptions: await Promise.all(found.map(info)) };
        }),
      },
      ReplayParked: {
        request: `${scope}.ReplayParkedReq`,
        response: none,
        features,
        handler: calls.unary<WireReplayRequest, object>(async ({ options }, call) => {
          const key = allowed(options, call);
          await groups.lead();
          const group = groups.get(key);
          const stopAt = options?.stopAt;
          await group.replayParked(
            stopAt === undefined ? Number.POSITIVE_INFINITY : toCount(stopAt),
          );
          return {};
        }),
      },
      RestartSubsystem: {
        request: none,
        response: none,
        handler: calls.unary<object, object>(async (_request, { identity }) => {
          access.checkGroup(identity, '$all', 'manage');
          await groups.restart();
          return {};
        }),
      },
      Read: {
        request: `${scope}.ReadReq`,
        response: `${scope}.ReadResp`,
        requestStream: true,
        responseStream: true,
        features,
        handler: calls.converse<WireGroupReadRequest, WireGroupReadResponse>(
          (requests, send, call) => readGroup(context, groups, requests, send, call),
        ),
      },
    },
  };
}
