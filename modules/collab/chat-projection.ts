// `app:{core}:collab:chat:v1:<chatId>`: a chat without its messages.

import { projection, readModel, type ProjectedEvent } from 'millrace/projections';
import type { ChatType, Role } from './fields.ts';
import type {
  chatCreated,
  chatTitleChanged,
  chatTypeChanged,
  participantJoined,
} from './chat-events.ts';

export interface ParticipantDocument {
  readonly userId: string;
  readonly role: Role;
  readonly joinedAt: string;
}

export interface ChatDocument {
  readonly chatId: string;
  readonly workspaceId: string;
  readonly type: ChatType;
  readonly title: string;
  readonly isPublic: boolean;
  readonly createdBy: string;
  readonly createdAt: string;
  readonly participants: readonly ParticipantDocument[];
}

type Created = ProjectedEvent<ReturnType<typeof chatCreated.parse>>;
type Participant = ProjectedEvent<ReturnType<typeof participantJoined.parse>>;
type Retyped = ProjectedEvent<ReturnType<typeof chatTypeChanged.parse>>;
type Retitled = ProjectedEvent<ReturnType<typeof chatTitleChanged.parse>>;

/** Whose private chats of which workspace. */
export function inWorkspace(workspaceId: string, userId: string): string {
  return `${workspaceId}.${userId}`;
}

export const chatProjection = projection({
  name: 'sub:collab:chat-projection:v1',
  readModel: readModel<ChatDocument>({
    bc: 'collab',
    aggregate: 'chat',
    version: 1,
    groups: {
      // A chat is in the first one or in the second, so that what somebody sees is the two together.
      public: ({ isPublic, workspaceId, createdAt }) =>
        isPublic ? { [workspaceId]: Date.parse(createdAt) } : {},
      private: ({ isPublic, workspaceId, participants, createdAt }) =>
        isPublic
          ? {}
          : Object.fromEntries(
              participants.map(({ userId }) => [
                inWorkspace(workspaceId, userId),
                Date.parse(createdAt),
              ]),
            ),
    },
  }),
  on: {
    'chat.created.v1': (_before, { payload, aggregate }: Created) => {
      const { timestamp, ...chat } = payload;
      return { ...chat, chatId: aggregate.id, createdAt: timestamp, participants: [] };
    },
    'chat.participant-joined.v1': (before, { payload, occurredAt }: Participant) =>
      before === null
        ? null
        : {
            ...before,
            participants: [
              ...before.participants.filter(({ userId }) => userId !== payload.userId),
              { ...payload, joinedAt: occurredAt },
            ],
          },
    'chat.participant-left.v1': (before, { payload }: Participant) =>
      before === null
        ? null
        : {
            ...before,
            participants: before.participants.filter(({ userId }) => userId !== payload.userId),
          },
    'chat.type-changed.v1': (before, { payload }: Retyped) =>
      before === null ? null : { ...before, ...payload },
    'chat.title-changed.v1': (before, { payload }: Retitled) =>
      before === null ? null : { ...before, ...payload },
  },
});
