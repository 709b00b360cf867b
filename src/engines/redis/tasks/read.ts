// Reads jobs by id and in pages, and counts them.

import { cursorOf, parseCursor } from '../../../tasks/list-cursor.ts';
import type { TaskEngine, TaskFilter, TypeCount } from '../../../tasks/task-engine.ts';
import { taskStates, type StoredTask, type TaskRef } from '../../../tasks/task-job.ts';
import { batchesOf } from '../../../foundation/async/batches-of.ts';
import { eachOf, forEachGroup } from '../connection/engine.ts';
import type { RedisScript } from '../connection/script.ts';
import { taskScripts, type RedisTaskContext } from './context.ts';
import { suffixOf } from './keyspace.ts';
import { letterOf, unpackHead, unpackTask } from './record.ts';

/** Jobs of one script call, which blocks the server. */
const readMax = 100;

type Reads = Pick<TaskEngine, 'get' | 'heads' | 'list' | 'counts'>;

export interface TaskReads extends Reads {
  types(): Promise<readonly string[]>;
}

/** A page of one type and the cursor of the next one. */
interface TypePage {
  readonly type: string;
  tasks: StoredTask[];
  cursor: string | undefined;
}

export function createTaskReads({ redis, keyspace }: RedisTaskContext): TaskReads {
  const types = async (): Promise<readonly string[]> =>
    (await redis.ask((client) => client.smembers(keyspace.types))).toSorted();

  async function fill(page: TypePage, filter: TaskFilter, limit: number): Promise<void> {
    while (page.tasks.length === 0 && page.cursor !== undefined) {
      const { base, never } = keyspace.typeKeys(page.type);
      const values = [...cellsOf(page.cursor), limit, ...filterValues(filter)];
      const [rows, next] = (await redis.run(taskScripts.list, [base, never], values)) as [
        rows: readonly (readonly [string, string, string])[],
        next: string,
      ];
      page.tasks = rows.map(([suffix, record, info]) =>
        unpackTask(page.type, [suffix, record, `${info}\nnull`]),
      );
      page.cursor = next === '' ? undefined : next;
    }
  }

  /** Runs a script for the ids of each type, in batches; returns the results in the order of `refs`. */
  function runForEach(refs: readonly TaskRef[], script: RedisScript): Promise<unknown[]> {
    return forEachGroup(
      refs,
      ({ type }) => type,
      async (own, type) => {
        const { base, never } = keyspace.typeKeys(type);
        const found: unknown[] = [];
        for (const some of batchesOf(own, { countMax: readMax })) {
          const ids = some.map(({ id }) => suffixOf(id));
          found.push(...((await redis.run(script, [base, never], ids)) as readonly unknown[]));
        }
        return found;
      },
    );
  }

  return {
    types,

    async get(refs) {
      const cells = await runForEach(refs, taskScripts.read);
      return refs.map(({ type }, at) => {
        const cell = cells[at] as readonly string[] | null;
        return cell === null ? undefined : unpackTask(type, cell);
      });
    },
    async heads(refs) {
      const records = await runForEach(refs, taskScripts.readRecords);
      return refs.map(({ id, type }, at) => {
        const record = records[at] as string | null;
        return record === null ? undefined : unpackHead(type, suffixOf(id), record);
      });
    },

    async list(filter, { cursor, limit }) {
      if (cursor !== undefined) parseCursor(cursor);
      const names = filter.type === undefined ? await types() : [filter.type];
      const pages = names.map((type): TypePage => ({ type, tasks: [], cursor: cursor ?? '' }));
      const tasks: StoredTask[] = [];
      while (tasks.length <= limit) {
        // Read one extra job to detect a next page.
        await Promise.all(pages.map((page) => fill(page, filter, limit + 1)));
        const [newest] = pages.filter((page) => page.tasks.length > 0).toSorted(newestFirst);
        const task = newest?.tasks.shift();
        if (task === undefined) break;
        tasks.push(task);
      }
      const page = tasks.slice(0, limit);
      const last = page.at(-1)?.head;
      return {
        tasks: page,
        cursor: tasks.length > limit && last !== undefined ? cursorOf(last) : undefined,
      };
    },

    async counts() {
      return eachOf(await types(), async (type): Promise<TypeCount> => {
        const { base, never } = keyspace.typeKeys(type);
        const cells = await redis.run(taskScripts.counts, [base, never], []);
        const [
          open = 0,
          running = 0,
          waiting = 0,
          scheduled = 0,
          completed = 0,
          failed = 0,
          cancelled = 0,
        ] = cells as readonly number[];
        const queued = open - running - waiting - scheduled;
        const states = { scheduled, queued, running, waiting, completed, failed, cancelled };
        return { type, states };
      });
    },
  };
}

function newestFirst({ tasks: [a] }: TypePage, { tasks: [b] }: TypePage): number {
  if (a === undefined || b === undefined) return 0;
  return b.head.enqueuedAtMs - a.head.enqueuedAtMs || (a.head.id < b.head.id ? 1 : -1);
}

function cellsOf(cursor: string): readonly string[] {
  if (cursor === '') return ['', ''];
  const [ms = '', id = ''] = cursor.split('/');
  return [ms, suffixOf(id)];
}

function filterValues(filter: TaskFilter): readonly (string | number)[] {
  const { states = taskStates, tenant, parentId = '', labels = [] } = filter;
  const { enqueuedFromMs = 0, enqueuedBeforeMs = 1e16 } = filter;
  const { updatedFromMs = 0, updatedBeforeMs = 1e16 } = filter;
  return [
    states.map(letterOf).join(''),
    tenant === undefined ? '' : `=${tenant}`,
    parentId,
    enqueuedFromMs,
    enqueuedBeforeMs,
    updatedFromMs,
    updatedBeforeMs,
    ...labels,
  ];
}
