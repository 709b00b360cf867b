// The read models, with reads that wait for a projection.

import { hasCode } from 'millrace/foundation';
import type { WebContext } from 'millrace/platform';
import type { DocumentQueries, Projection } from 'millrace/projections';
import type { Position } from 'millrace/store';
import {
  chatProjection,
  messageProjection,
  type ChatDocument,
  type MessageDocument,
} from '../chat-read-models.ts';
import {
  notificationProjection,
  type NotificationDocument,
} from '../notifications/notification.ts';
import { taskProjection, type TaskDocument } from '../tasks/task-read-models.ts';
import { userProjection, type UserDocument } from '../user.ts';
import { workspaceProjection, type WorkspaceDocument } from '../workspace.ts';

export interface CollabDocuments {
  readonly users: DocumentQueries<UserDocument>;
  readonly workspaces: DocumentQueries<WorkspaceDocument>;
  readonly chats: DocumentQueries<ChatDocument>;
  readonly messages: DocumentQueries<MessageDocument>;
  readonly tasks: DocumentQueries<TaskDocument>;
  readonly notifications: DocumentQueries<NotificationDocument>;
  /** Reads; if nothing is found, waits for the projection to catch up with the store and reads again. */
  again<Found>(
    projection: Projection,
    read: () => Promise<Found | undefined>,
  ): Promise<Found | undefined>;
  /** A document by its id, read like `again`. */
  fresh<Document extends object>(
    projection: Projection<Document>,
    tenant: string,
    id: string,
  ): Promise<Document | undefined>;
  /** Waits until the projection has reached the position; returns after 3 s at the latest. */
  settled(projection: Projection, position: Position | undefined): Promise<void>;
}

const waitMsMax = 3_000;

export function collabDocuments({ documents, store, waitFor }: WebContext): CollabDocuments {
  const of = <Document extends object>({
    readModel,
  }: Projection<Document>): DocumentQueries<Document> =>
    documents(readModel) as DocumentQueries<Document>;

  const settled: CollabDocuments['settled'] = async (projection, position) => {
    if (position === undefined) return;
    try {
      await waitFor(projection, position, { timeoutMs: waitMsMax });
    } catch (error) {
      if (!hasCode(error, 'WAIT_TIMEOUT')) throw error;
    }
  };

  const again: CollabDocuments['again'] = async (projection, read) => {
    const found = await read();
    if (found !== undefined) return found;
    await settled(projection, await store.head());
    return read();
  };

  return {
    users: of(userProjection),
    workspaces: of(workspaceProjection),
    chats: of(chatProjection),
    messages: of(messageProjection),
    tasks: of(taskProjection),
    notifications: of(notificationProjection),
    settled,
    again,
    fresh: async (projection, tenant, id) =>
      (await again(projection, () => of(projection).get(tenant, id)))?.document,
  };
}
