// Maps events to WebSocket messages. Pure.

import { isForgotten, type Position, type RecordedEvent } from 'millrace/store';
import {
  messageDeleted,
  messageEdited,
  messagePosted,
  participantJoined,
  participantLeft,
} from '../chat-events.ts';
import { notificationCreated } from '../notifications/notification-events.ts';
import {
  assigneeChanged,
  dueChanged,
  priorityChanged,
  severityChanged,
  statusChanged,
  taskCreated,
  titleChanged,
  typeChanged,
} from '../tasks/task-events.ts';

export const topics = {
  chat: (tenant: string, chatId: string): string => `${tenant} chat ${chatId}`,
  workspace: (tenant: string, workspaceId: string): string => `${tenant} workspace ${workspaceId}`,
  user: (tenant: string, userId: string): string => `${tenant} user ${userId}`,
};

export interface LiveMessage {
  readonly topic: string;
  readonly position: Position;
  /** The chat of a task: only users who see it get the message. */
  readonly ofChat?: string | undefined;
  readonly message: { readonly type: string; readonly [field: string]: unknown };
}

type Draft = Omit<LiveMessage, 'position'>;

type Definition = { readonly type: string; parse(payload: unknown): unknown };

/** Types the payload by the definition of the event. */
function on<Defined extends Definition>(
  { type }: Defined,
  toDraft: (payload: ReturnType<Defined['parse']>, event: RecordedEvent) => Draft,
): readonly [string, (event: RecordedEvent) => Draft] {
  // The aggregate validated the payload with the same definition.
  return [type, (event) => toDraft(event.payload as ReturnType<Defined['parse']>, event)];
}

const inChat = (
  { tenant, aggregate: { id: chatId } }: RecordedEvent,
  type: string,
  more: object,
): Draft => ({ topic: topics.chat(tenant, chatId), message: { type, chatId, ...more } });

interface TaskPayload {
  readonly taskId: string;
  readonly chatId: string;
  readonly workspaceId: string;
  readonly timestamp: string;
  readonly changedBy?: string | undefined;
  readonly createdBy?: string | undefined;
}

type Change = readonly [old: unknown, new: unknown];

const ofTask = (
  { tenant }: RecordedEvent,
  task: TaskPayload,
  fields: Readonly<Record<string, Change>>,
): Draft => {
  const { taskId, chatId, workspaceId, timestamp, changedBy = task.createdBy } = task;
  const changes = Object.fromEntries(
    Object.entries(fields).map(([field, [before, after]]) => [field, { old: before, new: after }]),
  );
  return {
    topic: topics.workspace(tenant, workspaceId),
    ofChat: chatId,
    message: { type: 'task.updated', taskId, chatId, workspaceId, changes, changedBy, timestamp },
  };
};

const mappers: ReadonlyMap<string, (event: RecordedEvent) => Draft> = new Map([
  on(messagePosted, (message, event) => inChat(event, 'chat.message.posted', { message })),
  on(messageEdited, ({ messageId, content, editedBy, timestamp }, event) =>
    inChat(event, 'chat.message.edited', { messageId, content, editedBy, timestamp }),
  ),
  on(messageDeleted, ({ messageId, deletedBy, timestamp }, event) =>
    inChat(event, 'chat.message.deleted', { messageId, deletedBy, timestamp }),
  ),
  on(participantJoined, (who, event) => inChat(event, 'chat.participant.joined', who)),
  on(participantLeft, (who, event) => inChat(event, 'chat.participant.left', who)),
  on(taskCreated, (task, event) =>
    ofTask(event, task, {
      type: [null, task.type],
      title: [null, task.title],
      status: [null, task.status],
    }),
  ),
  on(statusChanged, (task, event) =>
    ofTask(event, task, { status: [task.oldStatus, task.newStatus] }),
  ),
  on(assigneeChanged, (task, event) =>
    ofTask(event, task, { assignee: [task.oldAssignee, task.newAssignee] }),
  ),
  on(priorityChanged, (task, event) =>
    ofTask(event, task, { priority: [task.oldPriority, task.newPriority] }),
  ),
  on(dueChanged, (task, event) => ofTask(event, task, { due: [task.oldDue, task.newDue] })),
  on(titleChanged, (task, event) => ofTask(event, task, { title: [undefined, task.newTitle] })),
  on(severityChanged, (task, event) =>
    ofTask(event, task, { severity: [task.oldSeverity, task.newSeverity] }),
  ),
  on(typeChanged, (task, event) =>
    ofTask(event, task, {
      type: [task.oldType, task.newType],
      title: [undefined, task.title],
      status: [undefined, task.status],
    }),
  ),
  on(notificationCreated, ({ email: _mailed, ...notice }, { tenant, aggregate }) => ({
    topic: topics.user(tenant, notice.userId),
    message: {
      type: 'notification.new',
      notification: { notificationId: aggregate.id, ...notice, readAt: null },
    },
  })),
]);

export const liveTypes: readonly string[] = [...mappers.keys()];
export const liveTaskTypes = liveTypes.filter((type) => type.startsWith('task.'));

/** Undefined: the event has no live message. */
export function liveMessageOf(event: RecordedEvent): LiveMessage | undefined {
  const toDraft = mappers.get(event.type);
  if (toDraft === undefined || isForgotten(event.payload)) return undefined;
  const { position } = event;
  const { message, ...draft } = toDraft(event);
  return { ...draft, position, message: { ...message, position } };
}
