// The task aggregate: the result of all tags of its chat.

import { defineAggregate, CommandRejected, type EvolveMap } from 'millrace/aggregates';
import type { EventOf } from 'millrace/contracts';
import { collabLimits, own, type TagCommand } from '../fields.ts';
import { erasedText, evolveBy, evolveErased, writtenBy } from '../personal-text.ts';
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

const events = [
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
] as const;

const evolve: EvolveMap<TaskState, EventOf<(typeof events)[number]>> = {
  'task.created.v1': (state, { type, title, status, workspaceId }) => ({
    ...state,
    type,
    title,
    status,
    workspaceId,
  }),
  'task.status-changed.v1': (state, { newStatus: status }) => ({ ...state, status }),
  'task.assignee-changed.v1': (state, { newAssignee: assignee, timestamp }) => ({
    ...state,
    assignee,
    assignedAtMs: assignee === null ? null : Date.parse(timestamp),
  }),
  'task.priority-changed.v1': (state, { newPriority: priority }) => ({ ...state, priority }),
  'task.due-changed.v1': (state, { newDue: due }) => ({ ...state, due }),
  'task.title-changed.v1': (state, { newTitle: title }) => ({ ...state, title }),
  'task.severity-changed.v1': (state, { newSeverity: severity }) => ({ ...state, severity }),
  // Only bugs have a severity.
  'task.type-changed.v1': (state, { newType: type, title, status }) => ({
    ...state,
    type,
    title,
    status,
    severity: type === 'bug' ? state.severity : null,
  }),
  'task.watcher-added.v1': (state, { userId }, { occurredAt }) => ({
    ...state,
    watchers: { ...state.watchers, [userId]: Date.parse(occurredAt) },
  }),
  'task.watcher-removed.v1': (state, { userId }) => {
    const { [userId]: _removed, ...watchers } = state.watchers;
    return { ...state, watchers };
  },
  'task.tags-answered.v1': (state) => state,
};

export const task = defineAggregate({
  bc: 'collab',
  name: 'task',
  version: 1,
  events,
  commands: [createTask, applyTags, watchTask, unwatchTask],
  initial: none,
  // Version 2 added the times of watchers and of the assignee.
  snapshot: { codeVersion: 2 },
  evolve,
  forgotten: (state, event) => evolveErased(evolve, state, event),
  decide: {
    'task.create': ({ workspaceId, ...subject }, { type }, { tenant, id, nowMs }) => {
      if (type !== undefined) return [];
      const [status] = taskStatuses[subject.type];
      const taskIds = { taskId: id, chatId: id, workspaceId };
      const created = taskCreated({ ...taskIds, ...subject, status, timestamp: at(nowMs) });
      return writtenBy({ tenant, userId: subject.createdBy }, created, { title: erasedText });
    },
    'task.apply-tags': ({ messageId, tags, leftOut, users, ...judge }, state, context) => {
      const { tenant, id, nowMs } = context;
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
      const author = { tenant, userId: judge.by };
      const sealed = changes.map((change) => sealTitle(author, change));
      if (lines.length === 0) return sealed;
      const answered = tagsAnswered({ messageId, chatId: id, authorId: judge.by, lines });
      return [...sealed, writtenBy(author, answered, { lines: [erasedText] })];
    },
    'task.watch': ({ userId }, state, { id }) => {
      const taskIds = taskIdsOf(state, id);
      const isWatching = own(state.watchers, userId) !== undefined;
      return isWatching ? [] : watcherAdded({ ...taskIds, userId });
    },
    'task.unwatch': ({ userId }, state, { id }) => {
      const taskIds = taskIdsOf(state, id);
      const isWatching = own(state.watchers, userId) !== undefined;
      return isWatching ? watcherRemoved({ ...taskIds, userId }) : [];
    },
  },
});

/** The title of a tag comes from the text of a message, and is encrypted like it. */
function sealTitle(author: Parameters<typeof writtenBy>[0], change: TaskChange): TaskChange {
  if (change.type === titleChanged.type) {
    return writtenBy(author, change, { newTitle: erasedText });
  }
  if (change.type === taskCreated.type || change.type === typeChanged.type) {
    return writtenBy<TaskChange>(author, change, { title: erasedText });
  }
  return change;
}

/** Judges tags in order, each against the state after the tags before it. */
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
    state = evolveBy(evolve, state, change);
  }
  return { changes, lines };
}

function taskIdsOf(
  { type, workspaceId }: TaskState,
  id: string,
): { readonly taskId: string; readonly chatId: string; readonly workspaceId: string } {
  if (type === undefined) throw new CommandRejected('task-unknown', `Unknown task '${id}'.`);
  return { taskId: id, chatId: id, workspaceId };
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}
