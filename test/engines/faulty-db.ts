// A database that calls a function at a chosen moment of an append; the adapter runs on it unchanged.

import type { Db, Document } from 'mongodb';
import { interceptedDb, type Call } from './intercepted-db.ts';

/** The moments of an append, in order. */
export const faultPoints = [
  'before the commit',
  'after the commit',
  'in the middle of the copy',
  'after the copy',
  'after the strip',
] as const;

export type FaultPoint = (typeof faultPoints)[number] | 'after the first part';

type Step = (call: Call, args: readonly unknown[]) => Promise<unknown>;

/** `fail` is called once, when the moment is first reached. */
export function faultyDb(db: Db, point: FaultPoint, fail: () => Promise<void>): Db {
  let hasFailed = false;
  const once = async (): Promise<void> => {
    if (hasFailed) return;
    hasFailed = true;
    await fail();
  };
  const before: Step = async (call, args) => {
    await once();
    return call(...args);
  };
  const after: Step = async (call, args) => {
    const result = await call(...args);
    await once();
    return result;
  };
  const inTheMiddle: Step = async (call, [documents, ...rest]) => {
    if (hasFailed) return call(documents, ...rest);
    const all = documents as readonly Document[];
    await call(all.slice(0, Math.ceil(all.length / 2)), ...rest);
    await once();
    return call(all.slice(Math.ceil(all.length / 2)), ...rest);
  };
  const steps: Readonly<Record<FaultPoint, Readonly<Record<string, Step>>>> = {
    'before the commit': { 'events_commits.insertOne': before },
    'after the commit': { 'events_commits.insertOne': after },
    'in the middle of the copy': { 'events.insertMany': inTheMiddle },
    'after the copy': { 'events.insertMany': after },
    'after the strip': { 'events_commits.bulkWrite': after },
    'after the first part': { 'events_commit_parts.insertOne': after },
  };
  return interceptedDb(db, (operation, call) => {
    const step = steps[point][operation];
    return step === undefined ? call : (...args) => step(call, args);
  });
}
