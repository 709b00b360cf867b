// All persistent subscriptions of a server: made, changed and removed one at a time.

import type { KurrentContext } from '../context.ts';
import { Refusal, status } from '../refusal.ts';
import { createGroupRecords, keyText, type GroupKey } from './group-records.ts';
import { groupDropped, groupExists, groupMissing } from './group-refusals.ts';
import type { GroupSettings } from './group-settings.ts';
import { startGroup, type Group } from './group.ts';

export interface Groups extends AsyncDisposable {
  /** Takes up the groups that the store knows. */
  load(): Promise<void>;
  create(key: GroupKey, settings: GroupSettings): Promise<void>;
  /** Consumers are let go: they find the changed group when they come back. */
  update(key: GroupKey, change: (old: GroupSettings) => GroupSettings): Promise<void>;
  remove(key: GroupKey): Promise<void>;
  /** Stops and starts all, each from its checkpoint. */
  restart(): Promise<void>;
  get(key: GroupKey): Group;
  list(source?: string): readonly Group[];
}

export function createGroups(context: KurrentContext): Groups {
  const records = createGroupRecords(context);
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

  return {
    get,
    list: (source) =>
      [...groups.values()].filter(({ key }) => source === undefined || key.source === source),
    load: () =>
      inTurn(async () => {
        for (const { source, group, settings } of await records.loadAll()) {
          await start({ source, group }, settings);
        }
      }),
    create: (key, settings) =>
      inTurn(async () => {
        if (groups.has(keyText(key))) throw groupExists(key);
        if (groups.size >= context.limits.groupsMax) {
          throw new Refusal('the server has no room for more persistent subscriptions', {
            status: status.resourceExhausted,
          });
        }
        await records.save(key, settings);
        await start(key, settings);
      }),
    update: (key, change) =>
      inTurn(async () => {
        const old = get(key);
        const settings = change(old.settings);
        await records.save(key, settings);
        await old.drop(groupDropped(key));
        await start(key, settings);
      }),
    remove: (key) =>
      inTurn(async () => {
        const group = get(key);
        groups.delete(keyText(key));
        await group.drop(groupDropped(key));
        await records.remove(key);
      }),
    restart: () =>
      inTurn(async () => {
        for (const group of groups.values()) {
          await group.drop(groupDropped(group.key));
          await start(group.key, group.settings);
        }
      }),
    [Symbol.asyncDispose]: () =>
      inTurn(async () => {
        await Promise.all([...groups.values()].map((group) => group[Symbol.asyncDispose]()));
        groups.clear();
      }),
  };
}
