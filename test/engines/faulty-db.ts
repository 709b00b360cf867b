// A database that calls a function at a chosen moment of an append; the adapter runs on it unchanged.

import type { Db, Document } from 'mongodb';
import { interceptedDb, type Call } from './intercepted-db.ts';

/** The moments of an append, in order. */
export const strikePoints = [
  'before the commit',
  'after the commit',
  'in the middle of the copy',
  'after the copy',
  'after the strip',
] as const;

export type StrikePoint = (typeof strikePoints)[number] | 'after the first part';

type Step = (call: Call, args: readonly unknown[]) => Promise<unknown>;

/** `strike` is called once, when the moment is first reached. */
export function faultyDb(db: Db, point: StrikePoint, strike: () => Promise<void>): Db {
  let struck = false;
  const once = async (): Promise<void> => {
    if (struck) return;
    struck = true;
    await strike();
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
    if (struck) return call(documents, ...rest);
    const all = documents as readonly Document[];
    await call(all.slice(0, Math.ceil(all.length / 2)), ...rest);
    await once();
    return call(all.slice(Math.ceil(all.length / 2)), ...rest);
  };
  const steps: Readonly<Record<StrikePoint, Readonly<Record<string, Step>>>> = {
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
