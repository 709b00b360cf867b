// A database whose calls and replies a test can intercept; the adapter runs on it unchanged.

import type { Collection, Db } from 'mongodb';

export type Call = (...args: readonly unknown[]) => Promise<unknown>;

/** Receives `<collection>.<method>` (a read is `find` or `findOne`) and the original call. */
export type Interception = (operation: string, call: Call) => Call;

export function interceptedDb(db: Db, intercept: Interception): Db {
  return wrapped(db, (name, method) =>
    name === 'collection'
      ? (...args) => interceptedCollection(method(...args) as Collection, intercept)
      : method,
  );
}

function interceptedCollection(collection: Collection, intercept: Interception): Collection {
  const operation = (name: string): string => `${collection.collectionName}.${name}`;
  return wrapped(collection, (name, method) => {
    if (name === 'find') {
      return (...args) => interceptedCursor(method(...args) as object, operation(name), intercept);
    }
    return asynchronous.has(name) ? intercept(operation(name), method as Call) : method;
  });
}

const asynchronous = new Set([
  'bulkWrite',
  'deleteMany',
  'deleteOne',
  'distinct',
  'findOne',
  'findOneAndReplace',
  'insertMany',
  'insertOne',
]);

function interceptedCursor(cursor: object, operation: string, intercept: Interception): object {
  const proxy: object = wrapped(cursor, (name, method) => {
    if (name === 'toArray') return intercept(operation, method as Call);
    return (...args) => {
      const result = method(...args);
      return result === cursor ? proxy : result;
    };
  });
  return proxy;
}

type Method = (...args: readonly unknown[]) => unknown;

function wrapped<T extends object>(target: T, wrap: (name: string, method: Method) => Method): T {
  return new Proxy(target, {
    get(_target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return wrap(String(name), (value as Method).bind(target));
    },
  });
}
