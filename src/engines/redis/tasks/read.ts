// Reads jobs by id and in pages, and counts them.

import { cursorOf, parseCursor } from '../../../tasks/list-cursor.ts';
import type {
  TaskEngine,
  TaskFilter,
  TaskPageQuery,
  TypeCount,
} from '../../../tasks/task-engine.ts';
import { fieldBytes, taskStates, type StoredTask, type TaskRef } from '../../../tasks/task-job.ts';
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

  async function fill(
    page: TypePage,
    filter: TaskFilter,
    { limit, bytesMax }: Pick<TaskPageQuery, 'bytesMax' | 'limit'>,
  ): Promise<void> {
    while (page.tasks.length === 0 && page.cursor !== undefined) {
      const { base, never } = keyspace.typeKeys(page.type);
      const values = [...cellsOf(page.cursor), limit, ...filterValues(filter, bytesMax)];
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

    async list(filter, { cursor, limit, bytesMax }) {
      if (cursor !== undefined) parseCursor(cursor);
      const names = filter.type === undefined ? await types() : [filter.type];
      const pages = names.map((type): TypePage => ({ type, tasks: [], cursor: cursor ?? '' }));
      // One extra job, to detect a next page.
      const most = { limit: limit + 1, bytesMax: shareOf(bytesMax, names.length) };
      const tasks: StoredTask[] = [];
      let bytes = 0;
      for (;;) {
        await Promise.all(pages.map((page) => fill(page, filter, most)));
        const [newest] = pages.filter((page) => page.tasks.length > 0).toSorted(newestFirst);
        const task = newest?.tasks.shift();
        if (task === undefined) return { tasks, cursor: undefined };
        const last = tasks.at(-1)?.head;
        const isFull = tasks.length === limit || bytes >= (bytesMax ?? Infinity);
        if (isFull && last !== undefined) return { tasks, cursor: cursorOf(last) };
        tasks.push(task);
        bytes += fieldBytes(task.fields);
      }
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

/** The pages of all types are in memory at the same time. */
function shareOf(bytesMax: number | undefined, types: number): number | undefined {
  return bytesMax === undefined ? undefined : Math.ceil(bytesMax / types);
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

function filterValues(
  filter: TaskFilter,
  bytesMax: number | undefined,
): readonly (string | number)[] {
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
    bytesMax ?? '',
    ...labels,
  ];
}
