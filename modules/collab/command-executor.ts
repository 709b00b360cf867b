// From a message's tags to its task, and from a typed chat to the task that it is. Both come in the chat's own
// order, one after the other: a task is there before the first tags are applied to it.

import type { ModuleContext } from 'millrace/platform';
import { reactor, type Reactor } from 'millrace/reactors';
import { chat } from './chat.ts';
import { chatCreated, tagsParsed } from './chat-events.ts';
import { onBehalfOf } from './on-behalf-of.ts';
import type { TagCommand } from './tag-commands.ts';
import { applyTags, createTask } from './task-events.ts';
import { workspace } from './workspace.ts';

export function commandExecutor({ load }: Pick<ModuleContext, 'load'>): Reactor {
  return reactor({
    name: 'sub:collab:command-executor:v1',
    from: 'start',
    events: [chatCreated, tagsParsed],
    onRefused: 'dead-letter',
    onDeadLetter: 'park',
    on: {
      'chat.created.v1': ({ payload, aggregate, user }) => {
        const { type, title, workspaceId, isPublic, createdBy } = payload;
        if (type === 'discussion') return undefined;
        const command = createTask({ type, title, workspaceId, isPublic, createdBy });
        return { id: aggregate.id, command, ...onBehalfOf(user) };
      },
      'chat.tags-parsed.v1': async (event, { signal }) => {
        const { tenant, payload, user } = event;
        const { chatId: id, messageId, authorId: by, commands: tags, leftOut } = payload;
        const { state } = await load(chat, { tenant, id, signal });
        const { workspaceId = '', isPublic } = state;
        const names = new Set(tags.flatMap(nameIn));
        const users =
          names.size === 0 ? [] : await membersCalled(names, { tenant, id: workspaceId, signal });
        const wanted = { workspaceId, isPublic, messageId, by, tags, leftOut, users };
        return { id, command: applyTags(wanted), ...onBehalfOf(user) };
      },
    },
  });

  async function membersCalled(
    names: ReadonlySet<string>,
    at: { readonly tenant: string; readonly id: string; readonly signal: AbortSignal },
  ): Promise<{ username: string; userId: string }[]> {
    const { state } = await load(workspace, at);
    return Object.entries(state.members).flatMap(([userId, { username }]) =>
      names.has(username) ? [{ username, userId }] : [],
    );
  }
}

function nameIn(tag: TagCommand): readonly string[] {
  if (tag.type !== 'AssignUserCommand' || !tag.assignee.startsWith('@')) return [];
  return [tag.assignee.slice(1)];
}
