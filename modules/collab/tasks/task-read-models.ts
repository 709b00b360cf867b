// The read model of tasks, and the queries behind task lists and the board.

import {
  projection,
  readModel,
  type ProjectedEvent,
  type DocumentQueries,
  type Found,
  type Page,
} from 'millrace/projections';
import { dueMs, dueEndMs } from './due-date.ts';
import type { TaskType } from '../fields.ts';
import {
  priorities,
  type Priority,
  type Severity,
  type TaskStatus,
  type assigneeChanged,
  type dueChanged,
  type priorityChanged,
  type severityChanged,
  type statusChanged,
  type taskCreated,
  type titleChanged,
  type typeChanged,
  type watcherAdded,
  taskStatuses,
} from './task-events.ts';
import { inWorkspace, type ChatDocument, type PageRequest, wordsOf } from '../chat-read-models.ts';

export interface TaskDocument {
  readonly taskId: string;
  readonly chatId: string;
  readonly workspaceId: string;
  readonly type: TaskType;
  readonly title: string;
  readonly status: TaskStatus;
  /** As its chat: others see it only where they take part. */
  readonly isPublic: boolean;
  readonly assignee: string | null;
  readonly priority: Priority | null;
  /** A date, or a date and a time, as it was written. */
  readonly due: string | null;
  readonly severity: Severity | null;
  readonly watchers: readonly string[];
  readonly createdBy: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

type On<Definition extends { parse(payload: unknown): unknown }> = ProjectedEvent<
  ReturnType<Definition['parse']>
>;

/** `In Progress` → `in-progress`, as a part of a key. */
export function columnOf(workspaceId: string, status: TaskStatus, type?: TaskType): string {
  const slug = status.toLowerCase().replaceAll(' ', '-');
  return type === undefined ? `${workspaceId}.${slug}` : `${workspaceId}.${type}.${slug}`;
}

function changed<Payload extends { readonly timestamp: string }>(
  more: (payload: Payload) => Partial<TaskDocument>,
) {
  return (before: TaskDocument | null, { payload }: ProjectedEvent<Payload>): TaskDocument | null =>
    before === null ? null : { ...before, ...more(payload), updatedAt: payload.timestamp };
}

export const taskProjection = projection({
  name: 'sub:collab:task-projection:v1',
  readModel: readModel<TaskDocument>({
    bc: 'collab',
    aggregate: 'task',
    version: 1,
    groups: {
      created: ({ workspaceId, createdAt }) => ({ [workspaceId]: Date.parse(createdAt) }),
      updated: ({ workspaceId, updatedAt }) => ({ [workspaceId]: Date.parse(updatedAt) }),
      due: ({ workspaceId, due }) => (due === null ? {} : { [workspaceId]: dueMs(due) ?? 0 }),
      priority: ({ workspaceId, priority }) => ({
        [workspaceId]: priority === null ? priorities.length : priorities.indexOf(priority),
      }),
      // What everybody in the workspace sees: the rest is added for each of those who take part.
      column: ({ isPublic, workspaceId, status, type, updatedAt }) => {
        if (!isPublic) return {};
        const at = Date.parse(updatedAt);
        return {
          [columnOf(workspaceId, status)]: at,
          [columnOf(workspaceId, status, type)]: at,
        };
      },
    },
  }),
  on: {
    'task.created.v1': (_before, { payload }: On<typeof taskCreated>) => {
      const { timestamp, ...task } = payload;
      return {
        ...task,
        assignee: null,
        priority: null,
        due: null,
        severity: null,
        watchers: [],
        createdAt: timestamp,
        updatedAt: timestamp,
      };
    },
    'task.status-changed.v1': changed<On<typeof statusChanged>['payload']>(({ newStatus }) => ({
      status: newStatus,
    })),
    'task.assignee-changed.v1': changed<On<typeof assigneeChanged>['payload']>(
      ({ newAssignee }) => ({ assignee: newAssignee }),
    ),
    'task.priority-changed.v1': changed<On<typeof priorityChanged>['payload']>(
      ({ newPriority }) => ({ priority: newPriority }),
    ),
    'task.due-changed.v1': changed<On<typeof dueChanged>['payload']>(({ newDue }) => ({
      due: newDue,
    })),
    'task.title-changed.v1': changed<On<typeof titleChanged>['payload']>(({ newTitle }) => ({
      title: newTitle,
    })),
    'task.severity-changed.v1': changed<On<typeof severityChanged>['payload']>(
      ({ newSeverity }) => ({ severity: newSeverity }),
    ),
    'task.type-changed.v1': changed<On<typeof typeChanged>['payload']>(
      ({ newType, title, status }) => ({ type: newType, title, status, ...unlessBug(newType) }),
    ),
    'task.watcher-added.v1': (before, { payload: { userId } }: On<typeof watcherAdded>) =>
      before === null ? null : { ...before, watchers: [...before.watchers, userId] },
    'task.watcher-removed.v1': (before, { payload: { userId } }: On<typeof watcherAdded>) =>
      before === null
        ? null
        : { ...before, watchers: before.watchers.filter((each) => each !== userId) },
  },
});

/** Only bugs have a severity. */
function unlessBug(type: TaskType): { readonly severity: null } | object {
  return type === 'bug' ? {} : { severity: null };
}

export interface TaskFilters {
  readonly type?: TaskType | undefined;
  readonly status?: TaskStatus | undefined;
  /** A user's id; null: those of nobody. */
  readonly assignee?: string | null | undefined;
  readonly priority?: Priority | undefined;
  /** As `#due` takes them; both inclusive, a day to its end. */
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
  /** Words that the title holds, or begins words of it with. */
  readonly search?: string | undefined;
}

/** By `due` only tasks that have one. */
export type TaskSort = 'created' | 'updated' | 'due' | 'priority';

export interface TaskSource {
  readonly tasks: DocumentQueries<TaskDocument>;
  readonly chats: DocumentQueries<ChatDocument>;
}

export interface TasksAsked extends PageRequest {
  readonly workspaceId: string;
  /** Who asks. */
  readonly userId: string;
  readonly filters?: TaskFilters;
  readonly sort?: TaskSort;
  readonly direction?: 'ascending' | 'descending';
}

export interface BoardColumn {
  readonly status: TaskStatus;
  readonly count: number;
  /** Those that changed last, first. */
  readonly tasks: readonly TaskDocument[];
}

const pageSize = 50;
/** So many tasks are looked at for one page: then it has fewer than asked for, and a cursor. */
const filteredMax = 2_000;

export async function findTasks(
  { tasks, chats }: TaskSource,
  asked: TasksAsked,
): Promise<Page<TaskDocument>> {
  const { tenant, workspaceId, limit = pageSize, sort = 'created', filters = {} } = asked;
  const { direction = sort === 'due' || sort === 'priority' ? 'ascending' : 'descending' } = asked;
  const own = new Set(await privateChats(chats, asked));
  const { from, to } = sort === 'due' ? dueBounds(filters) : {};
  const items: Found<TaskDocument>[] = [];
  let { cursor } = asked;
  for (let seen = 0; seen < filteredMax;) {
    // Never more than are missing: a cursor stands behind the last one that was read.
    const missing = limit - items.length;
    seen += missing;
    const page = await tasks.byRange(tenant, sort, {
      group: workspaceId,
      direction,
      from,
      to,
      limit: missing,
      cursor,
    });
    items.push(
      ...page.items.filter(
        ({ id, document }) => (document.isPublic || own.has(id)) && fits(document, filters),
      ),
    );
    ({ cursor } = page);
    if (cursor === undefined || items.length === limit) break;
  }
  return { items, cursor };
}

/** Columns in the order of their statuses; those of one type, or of all. */
export async function taskBoard(
  { tasks, chats }: TaskSource,
  asked: Pick<TasksAsked, 'limit' | 'tenant' | 'userId' | 'workspaceId'> & {
    readonly type?: TaskType | undefined;
  },
): Promise<readonly BoardColumn[]> {
  const { tenant, workspaceId, type, limit = pageSize } = asked;
  const ids = await privateChats(chats, asked);
  const found = await Promise.all(ids.map((id) => tasks.get(tenant, id)));
  const own = found.flatMap((each) => (each === undefined ? [] : [each.document]));
  const types = type === undefined ? (['task', 'bug', 'epic'] as const) : [type];
  const statuses = new Set(types.flatMap((each): readonly TaskStatus[] => taskStatuses[each]));
  return Promise.all(
    [...statuses].map(async (status) => {
      const group = columnOf(workspaceId, status, type);
      const [count, page] = await Promise.all([
        tasks.count(tenant, 'column', { group }),
        tasks.byRange(tenant, 'column', { group, limit, direction: 'descending' }),
      ]);
      const mine = own.filter((each) => fits(each, { status, type }));
      const shown = [...page.items.map(({ document }) => document), ...mine];
      return {
        status,
        count: count + mine.length,
        tasks: shown
          .toSorted((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt))
          .slice(0, limit),
      };
    }),
  );
}

/** Ids of the private chats that the user takes part in, discussions among them. */
async function privateChats(
  chats: DocumentQueries<ChatDocument>,
  { tenant, workspaceId, userId }: Pick<TasksAsked, 'tenant' | 'userId' | 'workspaceId'>,
): Promise<readonly string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const group = inWorkspace(workspaceId, userId);
    const page = await chats.byRange(tenant, 'private', { group, limit: 1_000, cursor });
    ids.push(...page.items.filter(isTyped).map(({ id }) => id));
    ({ cursor } = page);
  } while (cursor !== undefined);
  return ids;
}

function isTyped({ document }: Found<ChatDocument>): boolean {
  return document.type !== 'discussion';
}

function fits(task: TaskDocument, filters: TaskFilters): boolean {
  const { type, status, assignee, priority, search } = filters;
  const isIn = (wanted: unknown, value: unknown): boolean =>
    wanted === undefined || wanted === value;
  if (!isIn(type, task.type) || !isIn(status, task.status)) return false;
  if (!isIn(assignee, task.assignee) || !isIn(priority, task.priority)) return false;
  const { from, to } = dueBounds(filters);
  if (from !== undefined || to !== undefined) {
    const due = task.due === null ? undefined : dueMs(task.due);
    if (due === undefined || due < (from ?? -Infinity) || due > (to ?? Infinity)) return false;
  }
  if (search === undefined) return true;
  const words = wordsOf(task.title);
  return wordsOf(search).every((wanted) => words.some((word) => word.startsWith(wanted)));
}

function dueBounds({ dueFrom, dueTo }: TaskFilters): {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
} {
  return {
    from: dueFrom === undefined ? undefined : dueMs(dueFrom),
    to: dueTo === undefined ? undefined : dueEndMs(dueTo),
  };
}
