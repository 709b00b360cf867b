// `app:{core}:collab:task:v1:<taskId>`: a task as lists and the board show it.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import { dueMs } from './due-date.ts';
import type { TaskType } from './fields.ts';
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
} from './task-events.ts';

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
