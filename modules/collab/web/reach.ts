// What a request is about, found and allowed, or refused: what somebody may not know of is as if it were
// not there.

import { chatProjection, type ChatDocument } from '../chat-projection.ts';
import { messageProjection, type MessageDocument } from '../message-projection.ts';
import { taskProjection, type TaskDocument } from '../task-projection.ts';
import { workspaceProjection, type WorkspaceDocument } from '../workspace-projection.ts';
import {
  chatRole,
  decideAccess,
  workspaceRole,
  type AccessDecision,
  type Action,
} from './access-rules.ts';
import type { CollabDocuments } from './collab-documents.ts';
import { forbidden, notFound } from './collab-errors.ts';
import type { WebUser } from './web-users.ts';

interface ReachedChat {
  readonly chat: ChatDocument;
  readonly workspace: WorkspaceDocument;
}

type Someone = Pick<WebUser, 'tenant' | 'userId'>;

export interface Reach {
  workspace(who: Someone, workspaceId: string, action: Action): Promise<WorkspaceDocument>;
  chat(who: Someone, chatId: string, action: Action): Promise<ReachedChat>;
  /** By the chat that it is in. */
  message(who: Someone, messageId: string, action: Action): Promise<MessageDocument>;
  task(who: Someone, taskId: string, action: Action): Promise<TaskDocument>;
}

export function createReach({ fresh }: Pick<CollabDocuments, 'fresh'>): Reach {
  const chat: Reach['chat'] = async ({ tenant, userId }, chatId, action) => {
    const found = await fresh(chatProjection, tenant, chatId);
    const workspace =
      found === undefined ? undefined : await fresh(workspaceProjection, tenant, found.workspaceId);
    obey(decideAccess(chatRole(found, workspace, userId), action), 'chat');
    if (found === undefined || workspace === undefined) throw notFound('chat');
    return { chat: found, workspace };
  };
  /** Not told apart: neither that it is there nor that its chat is. */
  const within = async <Found extends { readonly chatId: string }>(
    what: string,
    who: Someone,
    action: Action,
    found: Found | undefined,
  ): Promise<Found> => {
    if (found === undefined) throw notFound(what);
    await chat(who, found.chatId, action);
    return found;
  };
  return {
    chat,
    async workspace({ tenant, userId }, workspaceId, action) {
      const found = await fresh(workspaceProjection, tenant, workspaceId);
      obey(decideAccess(workspaceRole(found, userId), action), 'workspace');
      if (found === undefined) throw notFound('workspace');
      return found;
    },
    message: async (who, id, action) =>
      within('message', who, action, await fresh(messageProjection, who.tenant, id)),
    task: async (who, id, action) =>
      within('task', who, action, await fresh(taskProjection, who.tenant, id)),
  };
}

export function obey(decision: AccessDecision, what: string): void {
  if (decision === 'hidden') throw notFound(what);
  if (decision === 'forbidden') throw forbidden(`your role in this ${what} does not allow that`);
}
