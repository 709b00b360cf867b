// The file of task types, reloaded when it changes. If it is invalid, the error is logged and the previous types stay.

import { readFile } from 'node:fs/promises';
import { sweepLoop } from '../../loops/sweep-loop.ts';
import { parseTaskTypes } from '../parse-task-types.ts';
import type { TaskType } from '../task-type.ts';
import type { Tasks } from '../tasks.ts';

/**
 * The types of a YAML file.
 *
 * @example
 * import { loadTaskTypes } from 'millrace/tasks';
 *
 * const typesOf = (path: string) => loadTaskTypes(path);
 */
export async function loadTaskTypes(path: string): Promise<readonly TaskType[]> {
  return parseTaskTypes(await readFile(path, 'utf8'));
}

/**
 * Applies changes of the file to running tasks, until it is disposed. It compares the content, not the file's
 * times, because editors and mounted secrets replace files.
 *
 * @example
 * import { watchTaskTypes, type Tasks } from 'millrace/tasks';
 *
 * const follow = (tasks: Tasks): AsyncDisposable => watchTaskTypes(tasks, 'millrace.tasks.yaml');
 */
export function watchTaskTypes(
  tasks: Tasks,
  path: string,
  {
    everyMs = 2_000,
    complete = (types) => types,
  }: {
    readonly everyMs?: number | undefined;
    /** Adds types to those of the file, such as types that only handlers name. */
    readonly complete?: ((types: readonly TaskType[]) => readonly TaskType[]) | undefined;
  } = {},
): AsyncDisposable {
  const { observer, clock } = tasks.core;
  let seen: string | undefined;
  return sweepLoop(
    async () => {
      const text = await readFile(path, 'utf8');
      if (text === seen) return;
      const isFirst = seen === undefined;
      seen = text;
      const types = complete(parseTaskTypes(text));
      tasks.setTypes(types);
      const names = types.map(({ name }) => name);
      if (!isFirst) observer.log?.info({ types: names }, 'task types reloaded');
    },
    { everyMs, clock, onFailure: (err) => observer.log?.error({ err }, 'task types not reloaded') },
  );
}
