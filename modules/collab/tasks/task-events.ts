// Events and commands of a task. A task has the same id as its chat.

import { defineCommand, defineEvent } from 'millrace/contracts';
import { z } from 'zod';
import { streamId, tagCommand, taskType, timestamp, title, username, value } from '../fields.ts';

/** In the order of the board columns; a new task gets the first status. */
export const taskStatuses = {
  task: ['To Do', 'In Progress', 'Done'],
  bug: ['New', 'Investigating', 'Fixed', 'Verified'],
  epic: ['Planned', 'In Progress', 'Completed'],
} as const;
export const priorities = ['High', 'Medium', 'Low'] as const;
export const severities = ['Critical', 'Major', 'Minor', 'Trivial'] as const;

const status = z.enum([...taskStatuses.task, ...taskStatuses.bug, ...taskStatuses.epic] as const);
const priority = z.enum(priorities);
const severity = z.enum(severities);
export type TaskStatus = z.infer<typeof status>;
export type Priority = z.infer<typeof priority>;
export type Severity = z.infer<typeof severity>;

const taskIds = z.object({ taskId: streamId, chatId: streamId, workspaceId: streamId });
const change = taskIds.extend({ changedBy: streamId, timestamp });
const watcher = taskIds.extend({ userId: streamId });
const subject = z.object({ type: taskType, title });

export const taskCreated = defineEvent(
  'task.created.v1',
  taskIds.extend(subject.shape).extend({
    status,
    /** Copied from the chat. */
    isPublic: z.boolean(),
    createdBy: streamId,
    timestamp,
  }),
);
export const statusChanged = defineEvent(
  'task.status-changed.v1',
  change.extend({ oldStatus: status, newStatus: status }),
);
export const assigneeChanged = defineEvent(
  'task.assignee-changed.v1',
  change.extend({
    oldAssignee: streamId.nullable(),
    /** Null removes the assignee. */
    newAssignee: streamId.nullable(),
  }),
);
export const priorityChanged = defineEvent(
  'task.priority-changed.v1',
  change.extend({ oldPriority: priority.nullable(), newPriority: priority }),
);
export const dueChanged = defineEvent(
  'task.due-changed.v1',
  // A date or a date-time, as the user wrote it.
  change.extend({ oldDue: value.nullable(), newDue: value.nullable() }),
);
export const titleChanged = defineEvent(
  'task.title-changed.v1',
  // Events of earlier versions have the old title, which may be the text of another user.
  change.extend({ oldTitle: title.optional(), newTitle: title }),
);
export const severityChanged = defineEvent(
  'task.severity-changed.v1',
  change.extend({ oldSeverity: severity.nullable(), newSeverity: severity }),
);
export const typeChanged = defineEvent(
  'task.type-changed.v1',
  change.extend({ oldType: taskType, newType: taskType, title, status }),
);
export const watcherAdded = defineEvent('task.watcher-added.v1', watcher);
export const watcherRemoved = defineEvent('task.watcher-removed.v1', watcher);
/** The results of a message's tags, one line per tag. */
export const tagsAnswered = defineEvent(
  'task.tags-answered.v1',
  z.object({
    messageId: streamId,
    chatId: streamId,
    /** The author of the message; events of earlier versions do not have it. */
    authorId: streamId.optional(),
    lines: z.array(value).min(1),
  }),
);

const origin = z.object({ workspaceId: streamId, isPublic: z.boolean() });
export const createTask = defineCommand(
  'task.create',
  origin.extend(subject.shape).extend({ createdBy: streamId }),
);
/** All tags of a message, in order. */
export const applyTags = defineCommand(
  'task.apply-tags',
  origin.extend({
    messageId: streamId,
    by: streamId,
    tags: z.array(tagCommand).min(1),
    leftOut: z.int().min(0),
    /** The workspace members that the tags name; other names are unknown users. */
    users: z.array(z.object({ username, userId: streamId })),
  }),
);
export const watchTask = defineCommand('task.watch', z.object({ userId: streamId }));
export const unwatchTask = defineCommand('task.unwatch', z.object({ userId: streamId }));
