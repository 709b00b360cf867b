// All persistent subscriptions of a server. Changes run one at a time.

import type { KurrentContext } from '../context.ts';
import { RpcError, shuttingDown, status } from '../rpc-error.ts';
import { createGroupRecords, keyText, type GroupKey } from './group-records.ts';
import { groupDropped, groupExists, groupMissing, notLeader } from './group-errors.ts';
import type { GroupSettings } from './group-settings.ts';
import { startGroup, type Group } from './group.ts';
import { createLeadership, soleLeadership, type Address, type Member } from './leadership.ts';

export interface Groups extends AsyncDisposable {
  /** The servers on the same database that take part in the election. */
  readonly members: readonly Member[];
  /** Resolves if this server runs the groups; throws an RpcError if another server does. */
  lead(): Promise<void>;
  create(key: GroupKey, settings: GroupSettings): Promise<void>;
  /** Disconnects consumers; they reconnect to the changed group. */
  update(key: GroupKey, change: (old: GroupSettings) => GroupSettings): Promise<void>;
  remove(key: GroupKey): Promise<void>;
  /** Restarts all groups from their checkpoints. */
  restart(): Promise<void>;
  get(key: GroupKey): Group;
  list(source?: string): readonly Group[];
}

export function createGroups(context: KurrentContext, address: () => Address): Groups {
  const { leases } = context;
  const onLost = (): void => leadership.resign();
  const records = createGroupRecords(context, { fenced: leases !== undefined, onLost });
  const groups = new Map<string, Group>();
  let turn: Promise<unknown> = Promise.resolve();

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  };
  const get = (key: GroupKey): Group => {
    const group = groups.get(keyText(key));
    if (group === undefined) throw groupMissing(key);
    return group;
  };
  const start = async (key: GroupKey, settings: GroupSettings): Promise<void> => {
    groups.set(keyText(key), await startGroup(context, records, key, settings));
  };

  const stopAll = async (reason: Error): Promise<void> => {
    const all = [...groups.values()];
    groups.clear();
    await Promise.all(all.map((group) => group.drop(reason)));
  };
  const load = (): Promise<void> =>
    inTurn(async () => {
      for (const { source, group, settings } of await records.takeOver()) {
        try {
          await start({ source, group }, settings);
        } catch (error) {
          // One damaged group must not stop the others, nor the server.
          context.observer.log?.error({ err: error, source, group }, 'group not started');
        }
      }
    });
  const leadership =
    leases === undefined
      ? soleLeadership(load)
      : createLeadership({
          leases,
          address,
          ttlMs: context.limits.groupLeaseMs,
          clock: context.clock,
          observer: context.observer,
          onElected: load,
          onLost: () => inTurn(() => stopAll(notLeader(undefined))),
        });
  const lead = async (): Promise<void> => {
    await leadership.join();
    if (leadership.leads) return;
    const { host, port } = address();
    const leader = leadership.members.find(({ isLeader }) => isLeader)?.address;
    // A leader with our address is an earlier process, whose lease will expire.
    const isHere = leader?.host === host && leader.port === port;
    throw notLeader(isHere ? undefined : leader);
  };
  const whileLeading = async <T>(work: () => Promise<T>): Promise<T> => {
    await lead();
    return inTurn(work);
  };

  return {
    get,
    lead,
    get members() {
      return leadership.members;
    },
    list: (source) =>
      [...groups.values()].filter(({ key }) => source === undefined || key.source === source),
    create: (key, settings) =>
      whileLeading(async () => {
        if (groups.has(keyText(key))) throw groupExists(key);
        if (groups.size >= context.limits.groupsMax) {
          throw new RpcError('the server has reached its maximum of persistent subscriptions', {
            status: status.resourceExhausted,
          });
        }
        await records.save(key, settings);
        await start(key, settings);
      }),
    update: (key, change) =>
      whileLeading(async () => {
        const old = get(key);
        const settings = change(old.settings);
        await records.save(key, settings);
        await old.drop(groupDropped(key));
        await start(key, settings);
      }),
    remove: (key) =>
      whileLeading(async () => {
        const group = get(key);
        groups.delete(keyText(key));
        await group.drop(groupDropped(key));
        await records.remove(key);
      }),
    restart: () =>
      whileLeading(async () => {
        for (const group of groups.values()) {
          await group.drop(groupDropped(group.key));
          await start(group.key, group.settings);
        }
      }),
    async [Symbol.asyncDispose]() {
      // Groups save their last checkpoints while this server still has the lease.
      await inTurn(() => stopAll(shuttingDown()));
      await leadership[Symbol.asyncDispose]();
    },
  };
}
