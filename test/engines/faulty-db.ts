// A database at which a process is struck at a chosen moment: the adapter runs on it as it is.

import type { Collection, Db, Document } from 'mongodb';

/** The moments of an append, in their order. */
export const strikePoints = [
  'before the commit',
  'after the commit',
  'in the middle of the copy',
  'after the copy',
  'after the strip',
] as const;

export type StrikePoint = (typeof strikePoints)[number] | 'after the first part';

type Call = (...args: readonly unknown[]) => Promise<unknown>;
type Interception = (call: Call, args: readonly unknown[]) => Promise<unknown>;

/** `strike` is called once, at the first time that the moment comes. */
export function faultyDb(db: Db, point: StrikePoint, strike: () => Promise<void>): Db {
  let struck = false;
  const once = async (): Promise<void> => {
    if (struck) return;
    struck = true;
    await strike();
  };
  const before: Interception = async (call, args) => {
    await once();
    return call(...args);
  };
  const after: Interception = async (call, args) => {
    const result = await call(...args);
    await once();
    return result;
  };
  const inTheMiddle: Interception = async (call, [documents, ...rest]) => {
    if (struck) return call(documents, ...rest);
    const all = documents as readonly Document[];
    await call(all.slice(0, Math.ceil(all.length / 2)), ...rest);
    await once();
    return call(all.slice(Math.ceil(all.length / 2)), ...rest);
  };
  const interceptions: Readonly<Record<StrikePoint, Readonly<Record<string, Interception>>>> = {
    'before the commit': { 'events_commits.insertOne': before },
    'after the commit': { 'events_commits.insertOne': after },
    'in the middle of the copy': { 'events.insertMany': inTheMiddle },
    'after the copy': { 'events.insertMany': after },
    'after the strip': { 'events_commits.bulkWrite': after },
    'after the first part': { 'events_commit_parts.insertOne': after },
  };
  const chosen = interceptions[point];

  const collection = (inner: Collection): Collection =>
    intercepted(inner, (name, call) => {
      const interception = chosen[`${inner.collectionName}.${name}`];
      return interception === undefined
        ? call
        : (...args: readonly unknown[]) => interception(call as Call, args);
    });
  return intercepted(db, (name, call) =>
    name === 'collection'
      ? (...args: readonly unknown[]) => collection(call(...args) as Collection)
      : call,
  );
}

type Method = (...args: readonly unknown[]) => unknown;

function intercepted<T extends object>(target: T, wrap: (name: string, call: Method) => Method): T {
  return new Proxy(target, {
    get(_target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return wrap(String(name), (value as Method).bind(target));
    },
  });
}
