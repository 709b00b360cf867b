// The file of task types, read again when it changes: what is wrong in it is told, and the types before
// go on.

import { readFile } from 'node:fs/promises';
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
 * Keeps the types of running tasks as the file says, until it is disposed. It looks at the content, not at
 * the file's times: editors and mounted secrets replace files in ways of their own.
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
    /** What is added to the file's, such as types that only handlers name. */
    readonly complete?: ((types: readonly TaskType[]) => readonly TaskType[]) | undefined;
  } = {},
): AsyncDisposable {
  const { observer, clock } = tasks.core;
  const stopping = new AbortController();
  const { signal } = stopping;
  let seen: string | undefined;

  async function look(): Promise<void> {
    try {
      const text = await readFile(path, 'utf8');
      if (text === seen) return;
      const isFirst = seen === undefined;
      seen = text;
      const types = complete(parseTaskTypes(text));
      tasks.setTypes(types);
      const names = types.map(({ name }) => name);
      if (!isFirst) observer.log?.info({ types: names }, 'task types were reloaded');
    } catch (err) {
      observer.log?.error({ err }, 'task types could not be reloaded');
    }
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await look();
      await clock.sleep(everyMs, signal).catch(() => undefined);
    }
  }

  const done = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await done;
    },
  };
}
