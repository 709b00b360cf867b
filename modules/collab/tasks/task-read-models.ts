// The read model of tasks, and the queries for task lists and the board. Users see tasks of public chats and of their
// private chats.

import {
  projection,
  readModel,
  type DocumentQueries,
  type Found,
  type Page,
} from 'millrace/projections';
import { inWorkspace, wordsOf } from '../chat-read-models.ts';
import type { ChatDocument, TaskDocument } from '../documents.ts';
import type { TaskType } from '../fields.ts';
import { filteredPage, pageLimits, type PageRequest } from '../pages.ts';
import { applyErased } from '../personal-text.ts';
import { update, type Projected } from '../projected.ts';
import { dueEndMs, dueMs } from './due-date.ts';
import {
  priorities,
  taskStatuses,
  type assigneeChanged,
  type dueChanged,
  type Priority,
  type priorityChanged,
  type severityChanged,
  type statusChanged,
  type taskCreated,
  type TaskStatus,
  type titleChanged,
  type typeChanged,
  type watcherAdded,
} from './task-events.ts';

/** The group of a board column; `In Progress` becomes `in-progress`. */
function columnOf(workspaceId: string, status: TaskStatus, type?: TaskType): string {
  const slug = status.toLowerCase().replaceAll(' ', '-');
  return type === undefined ? `${workspaceId}.${slug}` : `${workspaceId}.${type}.${slug}`;
}

function change<Definition extends { parse(payload: unknown): unknown }>(
  changesOf: (payload: ReturnType<Definition['parse']>) => Partial<TaskDocument>,
) {
  return update<TaskDocument, Projected<Definition>>((task, { payload }) => ({
    ...task,
    ...changesOf(payload),
    updatedAt: (payload as { readonly timestamp: string }).timestamp,
  }));
}

const taskChanges = {
  'task.created.v1': (
    _before: TaskDocument | null,
    { payload }: Projected<typeof taskCreated>,
  ): TaskDocument => {
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
  'task.status-changed.v1': change<typeof statusChanged>(({ newStatus: status }) => ({ status })),
  'task.assignee-changed.v1': change<typeof assigneeChanged>(({ newAssignee: assignee }) => ({
    assignee,
  })),
  'task.priority-changed.v1': change<typeof priorityChanged>(({ newPriority: priority }) => ({
    priority,
  })),
  'task.due-changed.v1': change<typeof dueChanged>(({ newDue: due }) => ({ due })),
  'task.title-changed.v1': change<typeof titleChanged>(({ newTitle: title }) => ({ title })),
  'task.severity-changed.v1': change<typeof severityChanged>(({ newSeverity: severity }) => ({
    severity,
  })),
  // Only bugs have a severity.
  'task.type-changed.v1': change<typeof typeChanged>(({ newType: type, title, status }) =>
    type === 'bug' ? { type, title, status } : { type, title, status, severity: null },
  ),
  'task.watcher-added.v1': update<TaskDocument, Projected<typeof watcherAdded>>(
    (task, { payload: { userId } }) => ({ ...task, watchers: [...task.watchers, userId] }),
  ),
  'task.watcher-removed.v1': update<TaskDocument, Projected<typeof watcherAdded>>(
    (task, { payload: { userId } }) => ({
      ...task,
      watchers: task.watchers.filter((watcher) => watcher !== userId),
    }),
  ),
};

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
      // Public tasks only: `taskBoard` adds the private tasks that a user sees.
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
  on: taskChanges,
  onForgotten: applyErased<TaskDocument>(taskChanges),
});

interface TaskFilters {
  readonly type?: TaskType | undefined;
  readonly status?: TaskStatus | undefined;
  /** A user id; null: unassigned tasks. */
  readonly assignee?: string | null | undefined;
  readonly priority?: Priority | undefined;
  /** Dates in the format of `#due`, both inclusive. */
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
  /** Every word must be the prefix of a word of the title. */
  readonly search?: string | undefined;
}

/** `due` returns only tasks with a due date. */
type TaskSort = 'created' | 'updated' | 'due' | 'priority';

export interface TaskSource {
  readonly tasks: DocumentQueries<TaskDocument>;
  readonly chats: DocumentQueries<ChatDocument>;
}

export interface TasksRequest extends PageRequest {
  readonly workspaceId: string;
  /** The user who sends the query. */
  readonly userId: string;
  readonly filters?: TaskFilters | undefined;
  readonly sort?: TaskSort | undefined;
  readonly direction?: 'ascending' | 'descending' | undefined;
}

export interface BoardColumn {
  readonly status: TaskStatus;
  readonly count: number;
  /** Sorted by the time of the last change, newest first. */
  readonly tasks: readonly TaskDocument[];
}

/** How many tasks a page reads at most. */
const filteredMax = 2_000;

export async function findTasks(
  { tasks, chats }: TaskSource,
  request: TasksRequest,
): Promise<Page<TaskDocument>> {
  const { tenant, workspaceId: group, sort = 'created', filters = {} } = request;
  const { direction = sort === 'due' || sort === 'priority' ? 'ascending' : 'descending' } =
    request;
  const visible = new Set(await privateChats(chats, request));
  const bounds = sort === 'due' ? dueBounds(filters) : {};
  return filteredPage(
    request,
    filteredMax,
    (page) => tasks.byRange(tenant, sort, { ...page, ...bounds, group, direction }),
    ({ id, document }) => (document.isPublic || visible.has(id)) && matches(document, filters),
  );
}

/** Columns in status order, of one task type or of all. */
export async function taskBoard(
  { tasks, chats }: TaskSource,
  request: Pick<TasksRequest, 'limit' | 'tenant' | 'userId' | 'workspaceId'> & {
    readonly type?: TaskType | undefined;
  },
): Promise<readonly BoardColumn[]> {
  const { tenant, workspaceId, type, limit = pageLimits.default } = request;
  const ids = await privateChats(chats, request);
  const found = await Promise.all(ids.map((id) => tasks.get(tenant, id)));
  const privateTasks = found.flatMap((task) => (task === undefined ? [] : [task.document]));
  const types = type === undefined ? (['task', 'bug', 'epic'] as const) : [type];
  const statuses = new Set(types.flatMap((each): readonly TaskStatus[] => taskStatuses[each]));
  return Promise.all(
    [...statuses].map(async (status) => {
      const group = columnOf(workspaceId, status, type);
      const [count, page] = await Promise.all([
        tasks.count(tenant, 'column', { group }),
        tasks.byRange(tenant, 'column', { group, limit, direction: 'descending' }),
      ]);
      const inColumn = privateTasks.filter((task) => matches(task, { status, type }));
      const shown = [...page.items.map(({ document }) => document), ...inColumn];
      return {
        status,
        count: count + inColumn.length,
        tasks: shown
          .toSorted((a, b) => Date.parse(b.updatedAt) - Date.parse(a.updatedAt))
          .slice(0, limit),
      };
    }),
  );
}

/** Ids of the private typed chats of the user. */
async function privateChats(
  chats: DocumentQueries<ChatDocument>,
  { tenant, workspaceId, userId }: Pick<TasksRequest, 'tenant' | 'userId' | 'workspaceId'>,
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

function matches(task: TaskDocument, filters: TaskFilters): boolean {
  const { type, status, assignee, priority, search } = filters;
  const accepts = (wanted: unknown, value: unknown): boolean =>
    wanted === undefined || wanted === value;
  if (!accepts(type, task.type) || !accepts(status, task.status)) return false;
  if (!accepts(assignee, task.assignee) || !accepts(priority, task.priority)) return false;
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
