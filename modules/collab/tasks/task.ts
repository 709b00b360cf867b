// A task: what the tags of its chat have made of it.

import { defineAggregate, Refused, type AggregateEvent } from 'millrace/aggregates';
import { collabLimits, own, type TagCommand } from '../fields.ts';
import { judgeTag, type Judge, type TaskChange, type TaskState } from './judge-tags.ts';
import {
  applyTags,
  assigneeChanged,
  createTask,
  dueChanged,
  priorityChanged,
  severityChanged,
  statusChanged,
  tagsAnswered,
  taskCreated,
  taskStatuses,
  titleChanged,
  typeChanged,
  unwatchTask,
  watcherAdded,
  watcherRemoved,
  watchTask,
} from './task-events.ts';

const none: TaskState = {
  type: undefined,
  title: '',
  status: taskStatuses.task[0],
  workspaceId: '',
  assignee: null,
  assignedAtMs: null,
  priority: null,
  due: null,
  severity: null,
  watchers: {},
};

type Means<Definition extends { parse(payload: unknown): unknown }> = (
  state: TaskState,
  payload: ReturnType<Definition['parse']>,
) => TaskState;

const evolve = {
  'task.created.v1': ((state, { type, title, status, workspaceId }) => ({
    ...state,
    type,
    title,
    status,
    workspaceId,
  })) as Means<typeof taskCreated>,
  'task.status-changed.v1': ((state, { newStatus }) => ({
    ...state,
    status: newStatus,
  })) as Means<typeof statusChanged>,
  'task.assignee-changed.v1': ((state, { newAssignee, timestamp }) => ({
    ...state,
    assignee: newAssignee,
    assignedAtMs: newAssignee === null ? null : Date.parse(timestamp),
  })) as Means<typeof assigneeChanged>,
  'task.priority-changed.v1': ((state, { newPriority }) => ({
    ...state,
    priority: newPriority,
  })) as Means<typeof priorityChanged>,
  'task.due-changed.v1': ((state, { newDue }) => ({ ...state, due: newDue })) as Means<
    typeof dueChanged
  >,
  'task.title-changed.v1': ((state, { newTitle }) => ({ ...state, title: newTitle })) as Means<
    typeof titleChanged
  >,
  'task.severity-changed.v1': ((state, { newSeverity }) => ({
    ...state,
    severity: newSeverity,
  })) as Means<typeof severityChanged>,
  // Only bugs have a severity.
  'task.type-changed.v1': ((state, { newType, title, status }) => ({
    ...state,
    type: newType,
    title,
    status,
    severity: newType === 'bug' ? state.severity : null,
  })) as Means<typeof typeChanged>,
  'task.watcher-added.v1': (
    state: TaskState,
    { userId }: ReturnType<typeof watcherAdded.parse>,
    { occurredAt }: Pick<AggregateEvent, 'occurredAt'>,
  ) => ({ ...state, watchers: { ...state.watchers, [userId]: Date.parse(occurredAt) } }),
  'task.watcher-removed.v1': ((state, { userId }) => {
    const { [userId]: _gone, ...watchers } = state.watchers;
    return { ...state, watchers };
  }) as Means<typeof watcherRemoved>,
  'task.tags-answered.v1': (state: TaskState) => state,
};

export const task = defineAggregate({
  bc: 'collab',
  name: 'task',
  version: 1,
  events: [
    taskCreated,
    statusChanged,
    assigneeChanged,
    priorityChanged,
    dueChanged,
    titleChanged,
    severityChanged,
    typeChanged,
    watcherAdded,
    watcherRemoved,
    tagsAnswered,
  ],
  commands: [createTask, applyTags, watchTask, unwatchTask],
  initial: none,
  // 2: since when somebody watches it or has it.
  snapshot: { codeVersion: 2 },
  evolve,
  decide: {
    'task.create': ({ workspaceId, ...subject }, { type }, { id, nowMs }) => {
      if (type !== undefined) return [];
      const [status] = taskStatuses[subject.type];
      const place = { taskId: id, chatId: id, workspaceId };
      return taskCreated({ ...place, ...subject, status, timestamp: at(nowMs) });
    },
    'task.apply-tags': ({ messageId, tags, leftOut, users, ...judge }, state, { id, nowMs }) => {
      const byName = new Map(users.map(({ username, userId }) => [username, userId]));
      const { changes, lines } = judgeAll(tags, state, {
        ...judge,
        taskId: id,
        timestamp: at(nowMs),
        users: byName,
      });
      if (leftOut > 0) {
        lines.push(`❌ Only ${collabLimits.tagsMax} tags of a message count, ${leftOut} do not`);
      }
      if (lines.length === 0) return changes;
      return [...changes, tagsAnswered({ messageId, chatId: id, lines })];
    },
    'task.watch': ({ userId }, state, { id }) => {
      const place = placeOf(state, id);
      const isThere = own(state.watchers, userId) !== undefined;
      return isThere ? [] : watcherAdded({ ...place, userId });
    },
    'task.unwatch': ({ userId }, state, { id }) => {
      const place = placeOf(state, id);
      const isThere = own(state.watchers, userId) !== undefined;
      return isThere ? watcherRemoved({ ...place, userId }) : [];
    },
  },
});

/** In their order, each over what those before it have done. */
function judgeAll(
  tags: readonly TagCommand[],
  before: TaskState,
  judge: Judge,
): { readonly changes: TaskChange[]; readonly lines: string[] } {
  const changes: TaskChange[] = [];
  const lines: string[] = [];
  let state = before;
  for (const tag of tags) {
    const { change, line } = judgeTag(tag, state, judge);
    if (line !== undefined) lines.push(line);
    if (change === undefined) continue;
    changes.push(change);
    const means = evolve[change.type] as (from: TaskState, payload: unknown) => TaskState;
    state = means(state, change.payload);
  }
  return { changes, lines };
}

function placeOf(
  { type, workspaceId }: TaskState,
  id: string,
): { readonly taskId: string; readonly chatId: string; readonly workspaceId: string } {
  if (type === undefined) throw new Refused('task-unknown', `there is no task ${id}`);
  return { taskId: id, chatId: id, workspaceId };
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}
