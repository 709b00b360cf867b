// The methods of the PersistentSubscriptions service: create, update, delete, inspect, replay and read groups.

import type { CallInfo, CallKit, Method } from '../calls.ts';
import type { KurrentContext } from '../context.ts';
import { toSequence } from '../../../store/position.ts';
import { toCount } from '../protocol/wire-number.ts';
import { badRequest } from '../rpc-error.ts';
import type { Services } from '../services.ts';
import { indexFilter, rejectUnsupported } from '../streams/index-stream.ts';
import { streamNameOf } from '../streams/stream-name.ts';
import { keyOf, readGroup } from './read-group.ts';
import { type GroupKey, showNumber } from './group-records.ts';
import { groupFailed, groupMissing } from './group-errors.ts';
import type { Group } from './group.ts';
import type { Groups } from './groups.ts';
import {
  deleteGroupRequest,
  getInfoRequest,
  getInfoResponse,
  groupReadRequest,
  groupReadResponse,
  listRequest,
  listResponse,
  replayParkedRequest,
  writeRequest,
  type WireGroup,
  type WireSubscriptionInfo,
  type WireWriteRequest,
} from '../protocol/persistent-messages.ts';
import { nothing } from '../protocol/shared-messages.ts';
import { compileFilter } from '../../../store/event-filter.ts';
import type { EventStore } from '../../../store/event-store.ts';
import { toEventFilter, type From } from '../streams/read-plan.ts';
import { parseSettings, type GroupSettings } from './group-settings.ts';

export function persistentService(
  context: KurrentContext,
  groups: Groups,
  calls: CallKit,
): Services {
  const { access } = context;

  const planned = async (
    options: WireWriteRequest['options'],
    { identity }: CallInfo,
  ): Promise<GroupPlan> => {
    const plan = await planGroup(context, options);
    await access.checkGroup(identity, plan.key.source, 'admin');
    return plan;
  };
  const allowed = async (
    options: WireGroup | undefined,
    { identity }: CallInfo,
    scope: 'operate' | 'admin',
  ): Promise<GroupKey> => {
    if (options === undefined) throw badRequest('the request has no options');
    const key = keyOf(options);
    await access.checkGroup(identity, key.source, scope);
    return key;
  };
  const info = async (group: Group): Promise<WireSubscriptionInfo> => {
    return groupInfo(group, await group.countParked());
  };

  return {
    'event_store.client.persistent_subscriptions.PersistentSubscriptions': {
      ...withFeatures({
        Create: calls.unary('admin', writeRequest, nothing, async ({ options }, call) => {
          const { key, settings } = await planned(options, call);
          await groups.create(key, settings);
          return {};
        }),
        Update: calls.unary('admin', writeRequest, nothing, async ({ options }, call) => {
          const { key, settings } = await planned(options, call);
          // The filter cannot change after the creation of a group.
          await groups.update(key, ({ filter }) => ({ ...settings, filter }));
          return {};
        }),
        Delete: calls.unary('admin', deleteGroupRequest, nothing, async ({ options }, call) => {
          await groups.remove(await allowed(options, call, 'admin'));
          return {};
        }),
        GetInfo: calls.unary(
          'operate',
          getInfoRequest,
          getInfoResponse,
          async ({ options }, call) => {
            const key = await allowed(options, call, 'operate');
            await groups.lead();
            return { subscriptionInfo: await info(groups.get(key)) };
          },
        ),
        List: calls.unary(
          'operate',
          listRequest,
          listResponse,
          async ({ options }, { identity }) => {
            const one = options?.listForStream;
            const source =
              one === undefined
                ? undefined
                : one.stream === undefined
                  ? '$all'
                  : streamNameOf(one.stream);
            await access.checkGroup(identity, source ?? '$all', 'operate');
            await groups.lead();
            const found = groups.list(source);
            if (source !== undefined && found.length === 0)
              throw groupMissing({ source, group: '' });
            return { subscriptions: await Promise.all(found.map(info)) };
          },
        ),
        ReplayParked: calls.unary(
          'operate',
          replayParkedRequest,
          nothing,
          async ({ options }, call) => {
            const key = await allowed(options, call, 'operate');
            await groups.lead();
            const group = groups.get(key);
            const stopAt = options?.stopAt;
            await group.replayParked(
              stopAt === undefined ? Number.POSITIVE_INFINITY : toCount(stopAt),
            );
            return {};
          },
        ),
        Read: calls.converse('read', groupReadRequest, groupReadResponse, (requests, send, call) =>
          readGroup(context, groups, requests, send, call),
        ),
      }),
      RestartSubsystem: calls.unary('admin', nothing, nothing, async (_request, { identity }) => {
        await access.checkGroup(identity, '$all', 'admin');
        await groups.restart();
        return {};
      }),
    },
  };
}

function withFeatures(methods: Readonly<Record<string, Method>>): Readonly<Record<string, Method>> {
  const features = ['stream', 'all'];
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, { ...method, features }]),
  );
}

interface GroupPlan {
  readonly key: GroupKey;
  readonly settings: GroupSettings;
}

const headWaits = 5;
const headWaitMs = 50;

/** The settings of a new or updated group; the start position `end` becomes a fixed number here. */
async function planGroup(
  { store, clock }: Pick<KurrentContext, 'store' | 'clock'>,
  options: WireWriteRequest['options'],
): Promise<GroupPlan> {
  if (options?.settings === undefined) throw badRequest('the request has no settings');
  const { all, groupName: group, settings: wire } = options;
  if (group === '') throw badRequest('the group has no name');
  if (all !== undefined) {
    const from = fromOf(all.position?.commitPosition, all.end !== undefined);
    const filter = all.filter === undefined ? undefined : toEventFilter(all.filter);
    // An invalid pattern is rejected now, not when the group first reads.
    compileFilter(filter);
    const key = { source: '$all', group };
    let last = await lastNumber(store, '$all');
    // Readers of PostgreSQL may see an acknowledged position only after a concurrent append.
    for (let wait = 0; typeof from === 'number' && from > last; wait += 1) {
      if (wait === headWaits) {
        throw groupFailed(key, `the start position ${from} is after the last event, ${last}`);
      }
      await clock.sleep(headWaitMs);
      last = await lastNumber(store, '$all');
    }
    const after = from === 'end' ? last : from === 'start' ? 0 : from - 1;
    return {
      key,
      settings: { ...parseSettings(wire, { from, after: Math.max(0, after) }, key), filter },
    };
  }
  const source = streamNameOf(options.stream?.streamIdentifier ?? options.streamIdentifier);
  rejectUnsupported(source);
  // Clients send the start only in the deprecated field.
  const from = fromOf(options.stream?.revision ?? wire.revision, options.stream?.end !== undefined);
  const after = from === 'end' ? await lastNumber(store, source) : from === 'start' ? -1 : from - 1;
  const key = { source, group };
  return { key, settings: parseSettings(wire, { from, after }, key) };
}

function fromOf(at: Parameters<typeof toCount>[0] | undefined, end: boolean): From {
  if (end) return 'end';
  const count = at === undefined ? 0 : toCount(at);
  if (count === Number.MAX_SAFE_INTEGER) return 'end';
  return count === 0 ? 'start' : count;
}

/** The last number of a source; −1: the stream has no events. */
async function lastNumber(
  store: Pick<EventStore, 'head' | 'streamInfo'>,
  source: string,
): Promise<number> {
  if (source === '$all' || indexFilter(source) !== undefined) return toSequence(await store.head());
  return (await store.streamInfo(source))?.revision ?? -1;
}

/** The settings and statistics of a group, in the words of the protocol. */
function groupInfo(
  { key, settings, consumers, stats }: Pick<Group, 'key' | 'settings' | 'consumers' | 'stats'>,
  parked: number,
): WireSubscriptionInfo {
  const now = stats();
  const show = (at: number): string => showNumber(key, at);
  return {
    eventSource: key.source,
    groupName: key.group,
    status: 'Live',
    connections: now.consumers.map(({ id, availableSlots, inFlight, delivered }) => {
      const consumer = consumers.get(id);
      return {
        from: consumer?.peer ?? '',
        username: consumer?.user ?? '',
        totalItems: delivered,
        availableSlots,
        inFlightMessages: inFlight,
        connectionName: consumer?.connectionName ?? '',
      };
    }),
    totalItems: now.delivered,
    lastCheckpointedEventPosition: now.checkpoint > settings.after ? show(now.checkpoint) : '',
    lastKnownEventPosition: now.lastKnown === undefined ? '' : show(now.lastKnown),
    resolveLinkTos: settings.resolveLinks,
    startFrom: show(settings.from === 'start' ? 0 : settings.from === 'end' ? -1 : settings.from),
    messageTimeoutMilliseconds: settings.messageTimeoutMs,
    extraStatistics: settings.extraStatistics,
    maxRetryCount: settings.maxRetryCount,
    liveBufferSize: settings.liveBufferSize,
    bufferSize: settings.historyBufferSize,
    readBatchSize: settings.readBatchSize,
    checkPointAfterMilliseconds: settings.checkpointAfterMs,
    minCheckPointCount: settings.minCheckpointCount,
    maxCheckPointCount: settings.maxCheckpointCount,
    readBufferCount: now.waiting,
    retryBufferCount: now.retrying,
    totalInFlightMessages: now.inFlight,
    outstandingMessagesCount: now.inFlight,
    namedConsumerStrategy: settings.strategy,
    maxSubscriberCount: settings.maxSubscriberCount,
    parkedMessageCount: parked,
  };
}
