// The read models, with reads that wait for a projection.

import { hasCode } from 'millrace/foundation';
import type { WebContext } from 'millrace/platform';
import type { DocumentQueries, Projection } from 'millrace/projections';
import type { Position } from 'millrace/store';
import { chatProjection, messageProjection } from '../chat-read-models.ts';
import { notificationProjection } from '../notifications/notification.ts';
import { taskProjection } from '../tasks/task-read-models.ts';
import { userProjection } from '../user.ts';
import { workspaceProjection } from '../workspace.ts';

const waitMsMax = 3_000;

export type CollabDocuments = ReturnType<typeof collabDocuments>;

export function collabDocuments({ documents, store, waitFor }: WebContext) {
  const of = <Document extends object>({
    readModel,
  }: Projection<Document>): DocumentQueries<Document> =>
    documents(readModel) as DocumentQueries<Document>;

  /** Waits until the projection has reached the position; returns after 3 s at the latest. */
  const settled = async (projection: Projection, position: Position | undefined): Promise<void> => {
    if (position === undefined) return;
    try {
      await waitFor(projection, position, { timeoutMs: waitMsMax });
    } catch (error) {
      if (!hasCode(error, 'WAIT_TIMEOUT')) throw error;
    }
  };

  /** Reads; if nothing is found, waits for the projection to catch up with the store and reads again. */
  const again = async <Found>(
    projection: Projection,
    read: () => Promise<Found | undefined>,
  ): Promise<Found | undefined> => {
    const found = await read();
    if (found !== undefined) return found;
    await settled(projection, await store.head());
    return read();
  };

  /** A document by its id, read like `again`. */
  const fresh = async <Document extends object>(
    projection: Projection<Document>,
    tenant: string,
    id: string,
  ): Promise<Document | undefined> =>
    (await again(projection, () => of(projection).get(tenant, id)))?.document;

  return {
    users: of(userProjection),
    workspaces: of(workspaceProjection),
    chats: of(chatProjection),
    messages: of(messageProjection),
    tasks: of(taskProjection),
    notifications: of(notificationProjection),
    settled,
    again,
    fresh,
  };
}
