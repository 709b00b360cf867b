// The reactors of the chain from a message to its task and back: parse the tags, apply them to the task, update the chat.
// The commands of the reactors carry the user of the event.

import type { ModuleContext } from 'millrace/platform';
import { reactor, type Reactor } from 'millrace/reactors';
import {
  changeChatTitle,
  changeChatType,
  chatCreated,
  includeInChat,
  messagePosted,
  postAnswer,
  recordTags,
  tagsParsed,
} from './chat-events.ts';
import { chat } from './chat.ts';
import { botId, type TagCommand } from './fields.ts';
import { authorOf } from './personal-text.ts';
import { parseTags, tagParserVersion } from './tasks/tag-parser.ts';
import {
  applyTags,
  assigneeChanged,
  createTask,
  tagsAnswered,
  taskCreated,
  titleChanged,
  typeChanged,
} from './tasks/task-events.ts';
import { workspace } from './workspace.ts';

/** Parses each message once and records its tags with the version of the grammar. */
export const tagReactor = reactor({
  name: 'sub:collab:tag-parser:v1',
  from: 'start',
  events: [messagePosted],
  onRejected: 'dead-letter',
  // Tags of later messages of the chat must not overtake those of a failed one.
  onDeadLetter: 'park',
  on: {
    'chat.message-posted.v1': ({ payload, aggregate, user }) => {
      const { messageId, authorId, content } = payload;
      if (authorId === botId) return undefined;
      const { commands, text, leftOut } = parseTags(content);
      if (commands.length === 0) return undefined;
      const tags = { messageId, authorId, parserVersion: tagParserVersion, text, leftOut };
      const command = recordTags({ ...tags, commands: [...commands] });
      return { id: aggregate.id, command, user };
    },
  },
});

/** Creates the task of a typed chat and applies tags to it, in one reactor: a task exists before its first tags. */
export function commandExecutor({ load }: Pick<ModuleContext, 'load'>): Reactor {
  return reactor({
    name: 'sub:collab:command-executor:v1',
    from: 'start',
    events: [chatCreated, tagsParsed],
    onRejected: 'dead-letter',
    onDeadLetter: 'park',
    on: {
      'chat.created.v1': ({ payload, aggregate, user }) => {
        const { type, title, workspaceId, isPublic, createdBy } = payload;
        if (type === 'discussion') return undefined;
        const command = createTask({ type, title, workspaceId, isPublic, createdBy });
        return { id: aggregate.id, command, user };
      },
      'chat.tags-parsed.v1': async (event, { signal }) => {
        const { tenant, payload, user } = event;
        const { chatId: id, messageId, authorId: by, commands: tags, leftOut } = payload;
        const { state } = await load(chat, { tenant, id, signal });
        const { workspaceId = '', isPublic } = state;
        const names = new Set(tags.flatMap(assigneeName));
        const users =
          names.size === 0 ? [] : await membersNamed(names, { tenant, id: workspaceId, signal });
        const command = applyTags({ workspaceId, isPublic, messageId, by, tags, leftOut, users });
        return { id, command, user };
      },
    },
  });

  async function membersNamed(
    names: ReadonlySet<string>,
    address: { readonly tenant: string; readonly id: string; readonly signal: AbortSignal },
  ): Promise<{ username: string; userId: string }[]> {
    const { state } = await load(workspace, address);
    return Object.entries(state.members).flatMap(([userId, { username }]) =>
      names.has(username) ? [{ username, userId }] : [],
    );
  }
}

function assigneeName(tag: TagCommand): readonly string[] {
  if (tag.type !== 'AssignUserCommand' || !tag.assignee.startsWith('@')) return [];
  return [tag.assignee.slice(1)];
}

/** Posts the results of a message's tags into the chat. */
export const botReactor = reactor({
  name: 'sub:collab:bot:v1',
  from: 'start',
  events: [tagsAnswered],
  onRejected: 'dead-letter',
  on: {
    'task.tags-answered.v1': ({ payload: { chatId, messageId, authorId, lines } }) => ({
      id: chatId,
      command: postAnswer({
        inReplyTo: messageId,
        content: lines.join('\n'),
        ...(authorId === undefined ? {} : { authorId }),
      }),
      user: { id: botId },
    }),
  },
});

/** Copies type and title of the task to the chat, and adds the assignee as a participant. */
export const conversionReactor = reactor({
  name: 'sub:collab:conversion:v1',
  from: 'start',
  events: [taskCreated, typeChanged, titleChanged, assigneeChanged],
  onRejected: 'dead-letter',
  // In order: the last type and title win.
  onDeadLetter: 'park',
  on: {
    'task.created.v1': ({ payload: { chatId: id, type, title, createdBy }, user, headers }) => ({
      id,
      command: changeChatType({ type, title, ...authorOf({ headers }, createdBy) }),
      user,
    }),
    'task.type-changed.v1': ({ payload, user, headers }) => ({
      id: payload.chatId,
      command: changeChatType({
        type: payload.newType,
        title: payload.title,
        ...authorOf({ headers }, payload.changedBy),
      }),
      user,
    }),
    'task.title-changed.v1': ({ payload: { chatId: id, newTitle, changedBy }, user, headers }) => ({
      id,
      command: changeChatTitle({ title: newTitle, ...authorOf({ headers }, changedBy) }),
      user,
    }),
    'task.assignee-changed.v1': ({ payload: { chatId: id, newAssignee: userId }, user }) =>
      userId === null ? undefined : { id, command: includeInChat({ userId }), user },
  },
});
