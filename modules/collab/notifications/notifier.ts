// Notifies the assignee, the chat participants and the watchers of a task about each change, except the user who made
// it. A replay creates no new notifications. Recipients choose by their preferences which of them are e-mailed.

import type { Destination } from 'millrace/delivery';
import { idFromKey } from 'millrace/foundation';
import type { OutboxProjectorDefinition } from 'millrace/outbox';
import type { ModuleContext } from 'millrace/platform';
import { reactor, type Reaction, type Reactor } from 'millrace/reactors';
import { z } from 'zod';
import { chat, type ChatState } from '../chat.ts';
import { botId, own } from '../fields.ts';
import type { TaskState } from '../tasks/judge-tags.ts';
import {
  assigneeChanged,
  dueChanged,
  priorityChanged,
  severityChanged,
  statusChanged,
  titleChanged,
  typeChanged,
} from '../tasks/task-events.ts';
import { task } from '../tasks/task.ts';
import { authorOf } from '../personal-text.ts';
import { user } from '../user.ts';
import { workspace, type WorkspaceState } from '../workspace.ts';
import {
  createNotification,
  notificationCreated,
  type NotificationType,
} from './notification-events.ts';

interface Notice {
  readonly type: NotificationType;
  readonly title: string;
  readonly message: string;
  /** The new assignee, who also gets e-mail with the preference `mentions`. */
  readonly mentions?: string | null | undefined;
}

type TaskEvent = Parameters<Reactor['react']>[0] & {
  readonly payload: {
    readonly taskId: string;
    readonly chatId: string;
    readonly workspaceId: string;
    readonly changedBy: string;
  };
};

/** Deterministic, so a repeated event creates no second notification. */
export function notificationIdOf(eventId: string, userId: string): string {
  return idFromKey(`collab notification ${eventId} ${userId}`);
}

export function notifier({ load }: Pick<ModuleContext, 'load'>): Reactor {
  return reactor({
    name: 'sub:collab:notifier:v1',
    from: 'start',
    events: [
      statusChanged,
      assigneeChanged,
      priorityChanged,
      dueChanged,
      titleChanged,
      severityChanged,
      typeChanged,
    ],
    onRejected: 'dead-letter',
    // A slow recipient must not delay the others.
    sends: 'together',
    on: {
      'task.status-changed.v1': notifyOf(({ newStatus }) => changed('status', newStatus)),
      'task.assignee-changed.v1': notifyOf(({ newAssignee }) => ({
        type: 'task.assignee_changed',
        title: 'Task assignee changed',
        message: 'Task assignee changed',
        mentions: newAssignee,
      })),
      'task.priority-changed.v1': notifyOf(({ newPriority }) => changed('priority', newPriority)),
      'task.due-changed.v1': notifyOf(({ newDue }) => changed('due', newDue ?? 'none', 'due date')),
      'task.title-changed.v1': notifyOf(({ newTitle }) => changed('title', newTitle)),
      'task.severity-changed.v1': notifyOf(({ newSeverity }) => changed('severity', newSeverity)),
      'task.type-changed.v1': notifyOf(({ newType }) => changed('type', newType)),
    },
  });

  function notifyOf<Payload extends TaskEvent['payload']>(noticeOf: (payload: Payload) => Notice) {
    return (
      event: TaskEvent & { readonly payload: Payload },
      { signal }: { readonly signal: AbortSignal },
    ): Promise<Reaction[]> => notify(event, signal, noticeOf(event.payload));
  }

  async function notify(
    event: TaskEvent,
    signal: AbortSignal,
    notice: Notice,
  ): Promise<Reaction[]> {
    const { tenant, eventId, payload } = event;
    const { taskId, chatId, workspaceId, changedBy } = payload;
    const [about, room, team] = await Promise.all([
      load(task, { tenant, id: taskId, signal }),
      load(chat, { tenant, id: chatId, signal }),
      load(workspace, { tenant, id: workspaceId, signal }),
    ]);
    const recipients = recipientsOf(
      { task: about.state, chat: room.state, workspace: team.state },
      { changedBy, atMs: Date.parse(event.occurredAt) },
    );
    return Promise.all(
      recipients.map(async (userId) => {
        const isMentioned = notice.mentions === userId;
        const { title, message } = isMentioned ? assigned : notice;
        const { state } = await load(user, { tenant, id: userId, signal });
        const wants = state.emailPreference;
        const command = createNotification({
          userId,
          type: isMentioned ? 'task.assigned' : notice.type,
          title,
          message,
          resourceId: taskId,
          workspaceId,
          chatId,
          email:
            state.email !== undefined && (wants === 'all' || (wants === 'mentions' && isMentioned)),
          ...authorOf(event, changedBy),
        });
        return { id: notificationIdOf(eventId, userId), command, user: event.user };
      }),
    );
  }
}

/** Users who were involved when the event happened and have been since. The states are current, not of that time. */
export function recipientsOf(
  current: {
    readonly task: TaskState;
    readonly chat: ChatState;
    readonly workspace: WorkspaceState;
  },
  { changedBy, atMs }: { readonly changedBy: string; readonly atMs: number },
): readonly string[] {
  const { assignee, assignedAtMs, watchers } = current.task;
  const since: readonly (readonly [string, number])[] = [
    ...(assignee === null || assignedAtMs === null ? [] : [[assignee, assignedAtMs] as const]),
    ...Object.entries(current.chat.participants).map(([id, { sinceMs }]) => [id, sinceMs] as const),
    ...Object.entries(watchers),
  ];
  const recipients = new Set(since.flatMap(([userId, ms]) => (ms <= atMs ? [userId] : [])));
  for (const userId of [changedBy, botId]) recipients.delete(userId);
  return [...recipients].filter((userId) => {
    // Former members of the workspace are not notified.
    const member = own(current.workspace.members, userId);
    return member !== undefined && member.sinceMs <= atMs;
  });
}

const assigned = { title: 'Task assigned', message: 'A task was assigned to you' } as const;

function changed(
  what: 'status' | 'priority' | 'due' | 'title' | 'severity' | 'type',
  value: string,
  name: string = what,
): Notice {
  const title = `Task ${name} changed`;
  return { type: `task.${what}_changed`, title, message: `${title} to ${value}` };
}

// E-mail: the outbox stores the recipient and the text. The address is looked up when the mail is sent.
// Therefore only the user's events contain it, and a changed or forgotten address takes effect immediately.
/** The destination of the outbox rows. */
export const mailIntegration = 'email:notification';

export const notificationOutbox: OutboxProjectorDefinition = {
  name: 'sub:collab:outbox:v1',
  filter: { types: [notificationCreated.type] },
  mapper: {
    map(event) {
      if (!notificationCreated.is(event) || !event.payload.email) return undefined;
      const { userId, title, message, workspaceId, chatId, resourceId } = event.payload;
      return {
        integrationType: mailIntegration,
        eventType: event.type,
        payload: { userId, title, message, workspaceId, chatId, resourceId },
        orderingKey: userId,
      };
    },
  },
};

const job = z.object({ userId: z.string(), title: z.string(), message: z.string() });
const mail = z.object({ to: z.string(), subject: z.string(), text: z.string() });

/** For the option `compose` of `smtpDestination`. */
export function composeMail({
  payload,
}: {
  readonly payload: Readonly<Record<string, unknown>>;
}): z.infer<typeof mail> {
  return mail.parse(payload);
}

/** Calls `send` with the payload `{ to, subject, text }`. */
export function mailDestination(
  send: Destination,
  { load }: Pick<ModuleContext, 'load'>,
): Destination {
  return async (message, context) => {
    const { userId, title: subject, message: text } = job.parse(message.payload);
    const { tenantId: tenant = '' } = message;
    const { state } = await load(user, { tenant, id: userId, signal: context.signal });
    const { email: to, emailPreference } = state;
    if (to === undefined) return { kind: 'sent', skipped: 'user has no e-mail address' };
    if (emailPreference === 'none') return { kind: 'sent', skipped: 'user has disabled e-mail' };
    return send({ ...message, payload: { to, subject, text } }, context);
  };
}
