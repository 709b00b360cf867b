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
  /** `what` is asked for: nobody is told whether that, or only its chat, is not there. */
  const inChat = async (
    { tenant, userId }: Someone,
    action: Action,
    { chatId, what }: { readonly chatId: string; readonly what: string },
  ): Promise<ReachedChat> => {
    const chat = await fresh(chatProjection, tenant, chatId);
    const workspace =
      chat === undefined ? undefined : await fresh(workspaceProjection, tenant, chat.workspaceId);
    obey(decideAccess(chatRole(chat, workspace, userId), action), what);
    if (chat === undefined || workspace === undefined) throw notFound(what);
    return { chat, workspace };
  };
  return {
    chat: (who, chatId, action) => inChat(who, action, { chatId, what: 'chat' }),
    async workspace({ tenant, userId }, workspaceId, action) {
      const found = await fresh(workspaceProjection, tenant, workspaceId);
      obey(decideAccess(workspaceRole(found, userId), action), 'workspace');
      if (found === undefined) throw notFound('workspace');
      return found;
    },
    async message(who, id, action) {
      const found = await fresh(messageProjection, who.tenant, id);
      if (found === undefined) throw notFound('message');
      await inChat(who, action, { chatId: found.chatId, what: 'message' });
      return found;
    },
    async task(who, id, action) {
      const found = await fresh(taskProjection, who.tenant, id);
      if (found === undefined) throw notFound('task');
      await inChat(who, action, { chatId: found.chatId, what: 'task' });
      return found;
    },
  };
}

export function obey(decision: AccessDecision, what: string): void {
  if (decision === 'hidden') throw notFound(what);
  if (decision === 'forbidden') throw forbidden(`your role in this ${what} does not allow that`);
}
