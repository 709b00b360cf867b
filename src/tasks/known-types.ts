// The types that tasks are taken of, as they are configured now, and those that were.

import { MillraceError } from '../foundation/error.ts';
import { taskType, type TaskType } from './task-type.ts';

export interface KnownTypes {
  readonly all: () => readonly TaskType[];
  /** `TASK_TYPE_UNKNOWN` where it is not configured. */
  readonly configured: (name: string) => TaskType;
  /** Also of one that is no longer configured: its jobs are still worked off, by the old rules. */
  readonly workable: (name: string) => TaskType;
  /** Those of a job whose type nobody here has heard of: the defaults. */
  readonly rulesOf: (name: string) => TaskType;
  readonly set: (next: readonly TaskType[]) => void;
}

export function createKnownTypes(initial: readonly TaskType[]): KnownTypes {
  let types = new Map(initial.map((type) => [type.name, type]));
  const retired = new Map<string, TaskType>();

  function configured(name: string): TaskType {
    const type = types.get(name);
    if (type !== undefined) return type;
    throw new MillraceError('TASK_TYPE_UNKNOWN', `no task type '${name}' is configured`, {
      details: { type: name, known: [...types.keys()].slice(0, 50) },
    });
  }

  return {
    all: () => [...types.values()],
    configured,
    workable: (name) => types.get(name) ?? retired.get(name) ?? configured(name),
    rulesOf: (name) => types.get(name) ?? retired.get(name) ?? taskType(name),
    set(next) {
      for (const [name, type] of types) retired.set(name, type);
      types = new Map(next.map((type) => [type.name, type]));
      for (const name of types.keys()) retired.delete(name);
    },
  };
}
