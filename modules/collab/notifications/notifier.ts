// Who is told of what happened to a task: its assignee, those who take part in its chat, and those who watch
// it, but never the one who did it, nor whoever came later: when all is told again, nobody hears anything new.
// Whether by mail, too, each of them has decided.

import { idFromKey } from 'millrace/foundation';
import type { ModuleContext } from 'millrace/platform';
import { reactor, type Reaction, type Reactor } from 'millrace/reactors';
import { chat, type ChatState } from '../chat.ts';
import { botId, own } from '../fields.ts';
import type { TaskState } from '../tasks/judge-tags.ts';
import {
  createNotification,
  type NotificationType,
  notificationCreated,
} from './notification-events.ts';
import { onBehalfOf } from '../on-behalf-of.ts';
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
import { user } from '../user.ts';
import { workspace, type WorkspaceState } from '../workspace.ts';
import type { Destination } from 'millrace/delivery';
import type { OutboxProjectorDefinition } from 'millrace/outbox';
import { z } from 'zod';

interface News {
  readonly type: NotificationType;
  readonly title: string;
  readonly message: string;
  /** Whom it is about: told by mail also where only mentions are wanted. */
  readonly mentions?: string | null;
}

type TaskEvent = Parameters<Reactor['react']>[0] & {
  readonly payload: {
    readonly taskId: string;
    readonly chatId: string;
    readonly workspaceId: string;
    readonly changedBy: string;
  };
};

/** The same for a repeat: of one event there is one for each recipient. */
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
    onRefused: 'dead-letter',
    // Nobody's notification waits for somebody else's.
    sends: 'together',
    on: {
      'task.status-changed.v1': (event, { signal }) =>
        tell(event, signal, changed('status', event.payload.newStatus)),
      'task.assignee-changed.v1': (event, { signal }) =>
        tell(event, signal, {
          type: 'task.assignee_changed',
          title: 'Task assignee changed',
          message: 'Task assignee changed',
          mentions: event.payload.newAssignee,
        }),
      'task.priority-changed.v1': (event, { signal }) =>
        tell(event, signal, changed('priority', event.payload.newPriority)),
      'task.due-changed.v1': (event, { signal }) =>
        tell(event, signal, changed('due', event.payload.newDue ?? 'none', 'due date')),
      'task.title-changed.v1': (event, { signal }) =>
        tell(event, signal, changed('title', event.payload.newTitle)),
      'task.severity-changed.v1': (event, { signal }) =>
        tell(event, signal, changed('severity', event.payload.newSeverity)),
      'task.type-changed.v1': (event, { signal }) =>
        tell(event, signal, changed('type', event.payload.newType)),
    },
  });

  async function tell(event: TaskEvent, signal: AbortSignal, news: News): Promise<Reaction[]> {
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
        const isMentioned = news.mentions === userId;
        const { title, message } = isMentioned ? assigned : news;
        const { state } = await load(user, { tenant, id: userId, signal });
        const wants = state.emailPreference;
        const command = createNotification({
          userId,
          type: isMentioned ? 'task.assigned' : news.type,
          title,
          message,
          resourceId: taskId,
          workspaceId,
          chatId,
          email:
            state.email !== undefined && (wants === 'all' || (wants === 'mentions' && isMentioned)),
        });
        return { id: notificationIdOf(eventId, userId), command, ...onBehalfOf(event.user) };
      }),
    );
  }
}

/**
 * Those who were there when it happened and have been ever since. The states are those of now: what somebody
 * has left and come back to was told in its time, or was not theirs.
 */
export function recipientsOf(
  now: { readonly task: TaskState; readonly chat: ChatState; readonly workspace: WorkspaceState },
  { changedBy, atMs }: { readonly changedBy: string; readonly atMs: number },
): readonly string[] {
  const { assignee, assignedAtMs, watchers } = now.task;
  const since: readonly (readonly [string, number])[] = [
    ...(assignee === null || assignedAtMs === null ? [] : [[assignee, assignedAtMs] as const]),
    ...Object.entries(now.chat.participants).map(([id, { sinceMs }]) => [id, sinceMs] as const),
    ...Object.entries(watchers),
  ];
  const recipients = new Set(since.flatMap(([userId, ms]) => (ms <= atMs ? [userId] : [])));
  for (const each of [changedBy, botId]) recipients.delete(each);
  return [...recipients].filter((userId) => {
    // Who has left the workspace hears of it no more.
    const member = own(now.workspace.members, userId);
    return member !== undefined && member.sinceMs <= atMs;
  });
}

const assigned = { title: 'Task assigned', message: 'A task was assigned to you' } as const;

function changed(
  what: 'status' | 'priority' | 'due' | 'title' | 'severity' | 'type',
  value: string,
  name: string = what,
): News {
  const title = `Task ${name} changed`;
  return { type: `task.${what}_changed`, title, message: `${title} to ${value}` };
}

// Notifications that leave as mails. The outbox holds who is to be told what; the address is looked up when
// the mail is sent, so that no copy of it lies anywhere, and one that was changed or forgotten counts at once.
/** Chooses the destination. */
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

/** What `smtpDestination` composes its mails by. */
export function composeMail({
  payload,
}: {
  readonly payload: Readonly<Record<string, unknown>>;
}): z.infer<typeof mail> {
  return mail.parse(payload);
}

/** Gives `send` the mail as the payload: `{ to, subject, text }`. */
export function mailDestination(
  send: Destination,
  { load }: Pick<ModuleContext, 'load'>,
): Destination {
  return async (message, context) => {
    const { userId, title: subject, message: text } = job.parse(message.payload);
    const { tenantId: tenant = '' } = message;
    const { state } = await load(user, { tenant, id: userId, signal: context.signal });
    const { email: to, emailPreference } = state;
    if (to === undefined) return { kind: 'sent', skipped: 'the user has no address' };
    if (emailPreference === 'none') return { kind: 'sent', skipped: 'the user wants no mails' };
    return send({ ...message, payload: { to, subject, text } }, context);
  };
}
