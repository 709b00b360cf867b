// The chat aggregate: participants and messages. The state contains the authors of recent
// messages, because an author may still edit a recent message, but no text. Messages and titles are encrypted with the
// key of their author.

import { defineAggregate, CommandRejected, type EvolveMap } from 'millrace/aggregates';
import type { EventOf } from 'millrace/contracts';
import {
  changeChatTitle,
  changeChatType,
  chatCreated,
  chatTitleChanged,
  chatTypeChanged,
  createChat,
  deleteMessage,
  editMessage,
  includeInChat,
  joinChat,
  leaveChat,
  messageDeleted,
  messageEdited,
  messagePosted,
  participantJoined,
  participantLeft,
  postAnswer,
  postMessage,
  recordTags,
  tagsParsed,
} from './chat-events.ts';
import { subjectHeader } from 'millrace/store';
import { erasedText, evolveErased, withoutText, writtenBy } from './personal-text.ts';
import { userSubject } from './user.ts';
import { botId, collabLimits, own, type ChatType, type Role } from './fields.ts';

interface RecentMessage {
  readonly messageId: string;
  readonly authorId: string;
  readonly postedAtMs: number;
}

interface Participant {
  readonly role: Role;
  /** Start of the current participation, also across role changes; earlier events cause no notification. */
  readonly sinceMs: number;
}

export interface ChatState {
  /** Undefined: the chat does not exist. */
  readonly workspaceId: string | undefined;
  readonly type: ChatType;
  /** Undefined: the text of a user, which snapshots must not contain. Events of earlier versions have plain titles. */
  readonly title: string | undefined;
  readonly isPublic: boolean;
  readonly participants: Readonly<Record<string, Participant>>;
  /** Messages that their authors may still change, oldest first. */
  readonly recent: readonly RecentMessage[];
}

/** If a chat gets more messages within five minutes, only admins can change the older ones. */
const recentMax = 200;

const none: ChatState = {
  workspaceId: undefined,
  type: 'discussion',
  title: '',
  isPublic: false,
  participants: {},
  recent: [],
};

const events = [
  chatCreated,
  participantJoined,
  participantLeft,
  messagePosted,
  tagsParsed,
  messageEdited,
  messageDeleted,
  chatTypeChanged,
  chatTitleChanged,
] as const;

const evolve: EvolveMap<ChatState, EventOf<(typeof events)[number]>> = {
  'chat.created.v1': (state, { workspaceId, type, title, isPublic }, event) => ({
    ...state,
    workspaceId,
    type,
    title: plainTitle(title, event),
    isPublic,
  }),
  'chat.participant-joined.v1': (state, { userId, role }, { occurredAt }) => {
    const sinceMs = own(state.participants, userId)?.sinceMs ?? Date.parse(occurredAt);
    return { ...state, participants: { ...state.participants, [userId]: { role, sinceMs } } };
  },
  'chat.participant-left.v1': (state, { userId }) => {
    const { [userId]: _gone, ...participants } = state.participants;
    return { ...state, participants };
  },
  'chat.message-posted.v1': (state, { messageId, authorId, timestamp }) =>
    authorId === botId ? state : { ...state, recent: push(state, messageId, authorId, timestamp) },
  'chat.tags-parsed.v1': (state) => state,
  'chat.message-edited.v1': (state) => state,
  'chat.message-deleted.v1': (state, { messageId }) => ({
    ...state,
    recent: state.recent.filter((each) => each.messageId !== messageId),
  }),
  'chat.type-changed.v1': (state, { type, title }, event) => ({
    ...state,
    type,
    title: plainTitle(title, event),
  }),
  'chat.title-changed.v1': (state, { title }, event) => ({
    ...state,
    title: plainTitle(title, event),
  }),
};

export const chat = defineAggregate({
  bc: 'collab',
  name: 'chat',
  version: 1,
  events,
  commands: [
    createChat,
    joinChat,
    includeInChat,
    leaveChat,
    postMessage,
    recordTags,
    postAnswer,
    editMessage,
    deleteMessage,
    changeChatType,
    changeChatTitle,
  ],
  initial: none,
  // Version 2 added `sinceMs` of participants.
  snapshot: { codeVersion: 2, holdsPersonalData: false },
  evolve,
  forgotten: (state, event) => evolveErased(evolve, state, event),
  decide: {
    'chat.create': ({ participants, ...subject }, state, { tenant, id, nowMs }) => {
      if (state.workspaceId !== undefined)
        throw new CommandRejected('chat-exists', `Chat ${id} already exists.`);
      const { createdBy } = subject;
      const others = new Set(participants.filter((each) => each !== createdBy && each !== botId));
      return [
        titledBy(tenant, createdBy, chatCreated({ ...subject, timestamp: at(nowMs) })),
        participantJoined({ userId: createdBy, role: 'admin' }),
        ...[...others].map((userId) => participantJoined({ userId, role: 'member' })),
      ];
    },
    'chat.join': ({ userId, role, by }, state, { id }) => {
      assertKnown(state, id);
      const isOpen = state.isPublic && userId === by && role === 'member';
      if (!isOpen) assertAdmin(state, by);
      return own(state.participants, userId)?.role === role
        ? []
        : participantJoined({ userId, role });
    },
    'chat.include': ({ userId }, state, { id }) => {
      assertKnown(state, id);
      const isIn = own(state.participants, userId) !== undefined;
      return isIn ? [] : participantJoined({ userId, role: 'member' });
    },
    'chat.leave': ({ userId, by }, state, { id }) => {
      assertKnown(state, id);
      if (userId !== by) assertAdmin(state, by);
      const participant = own(state.participants, userId);
      return participant === undefined ? [] : participantLeft({ userId, role: participant.role });
    },
    'chat.post-message': ({ messageId, authorId, content }, state, { tenant, id, nowMs }) => {
      assertKnown(state, id);
      if (authorId === botId)
        throw new CommandRejected(
          'author-reserved',
          `The author id "${botId}" is reserved for the bot.`,
        );
      const known = state.recent.find((each) => each.messageId === messageId);
      if (known?.authorId === authorId) return [];
      if (known !== undefined)
        throw new CommandRejected(
          'message-exists',
          `Message ${messageId} of another author already exists.`,
        );
      const message = { messageId, chatId: id, authorId, content, timestamp: at(nowMs) };
      const posted = about(tenant, { authorId, messageId }, messagePosted(message));
      if (own(state.participants, authorId) !== undefined) return posted;
      if (!state.isPublic)
        throw new CommandRejected(
          'not-a-participant',
          `${authorId} is not a participant of chat ${id}.`,
        );
      // The author of a message in a public chat becomes a participant.
      return [participantJoined({ userId: authorId, role: 'member' }), posted];
    },
    'chat.record-tags': (tags, state, { tenant, id, nowMs }) => {
      assertKnown(state, id);
      return about(tenant, tags, tagsParsed({ ...tags, chatId: id, timestamp: at(nowMs) }));
    },
    'chat.post-answer': ({ authorId, ...answer }, state, { tenant, id, nowMs, nextId }) => {
      assertKnown(state, id);
      const messageId = nextId();
      const message = { messageId, chatId: id, authorId: botId, timestamp: at(nowMs) };
      const posted = messagePosted({ ...message, ...answer });
      return authorId === undefined ? posted : about(tenant, { authorId, messageId }, posted);
    },
    'chat.edit-message': (edit, state, { tenant, id, nowMs }) => {
      const { messageId, by, content } = edit;
      assertMayChange(state, { id, messageId, by, nowMs });
      const recent = state.recent.find((each) => each.messageId === messageId);
      const authorId = recent?.authorId ?? edit.authorId ?? by;
      const changed = { content, editedBy: by, timestamp: at(nowMs) };
      const edited = messageEdited({ messageId, chatId: id, ...changed });
      return about(tenant, { authorId, messageId }, edited);
    },
    'chat.delete-message': ({ messageId, by }, state, { id, nowMs }) => {
      assertMayChange(state, { id, messageId, by, nowMs });
      return messageDeleted({ messageId, chatId: id, deletedBy: by, timestamp: at(nowMs) });
    },
    'chat.change-type': ({ by, ...subject }, state, { tenant, id }) => {
      assertKnown(state, id);
      // A task whose title differs changes it with `chat.change-title`.
      const { title = subject.title } = state;
      const isSame = state.type === subject.type && title === subject.title;
      return isSame ? [] : titledBy(tenant, by, chatTypeChanged(subject));
    },
    'chat.change-title': ({ title, by }, state, { tenant, id }) => {
      assertKnown(state, id);
      return state.title === title ? [] : titledBy(tenant, by, chatTitleChanged({ title }));
    },
  },
});

/** The text is the author's; the projection of messages needs the id also when the text is erased. */
function about<Event extends object>(
  tenant: string,
  { authorId, messageId }: { readonly authorId: string; readonly messageId: string },
  event: Event,
): Event {
  return { ...event, headers: { [subjectHeader]: userSubject(tenant, authorId), messageId } };
}

/** The text of a user: encrypted, and not in the state. */
function titledBy<Event extends { readonly payload: { readonly title: string } }>(
  tenant: string,
  userId: string | undefined,
  event: Event,
): Event {
  if (userId === undefined) return event;
  return writtenBy<{ readonly payload: { readonly title: string } }>({ tenant, userId }, event, {
    title: erasedText,
  }) as Event;
}

/** Undefined if the event has the text of a user. */
function plainTitle(title: string, event: Parameters<typeof withoutText>[0]): string | undefined {
  return withoutText(event) === undefined ? title : undefined;
}

function push(
  { recent }: ChatState,
  messageId: string,
  authorId: string,
  timestamp: string,
): readonly RecentMessage[] {
  const postedAtMs = Date.parse(timestamp);
  const from = postedAtMs - collabLimits.editWithinMs;
  const editable = recent.filter((message) => message.postedAtMs >= from).slice(1 - recentMax);
  return [...editable, { messageId, authorId, postedAtMs }];
}

function assertKnown({ workspaceId }: ChatState, id: string): void {
  if (workspaceId === undefined) throw new CommandRejected('chat-unknown', `Unknown chat '${id}'.`);
}

function assertAdmin({ participants }: ChatState, userId: string): void {
  if (own(participants, userId)?.role === 'admin') return;
  throw new CommandRejected('not-an-admin', 'Only an admin of the chat is allowed to do this.');
}

/** Admins may also change messages that are not in `recent`: the caller has checked that they exist. */
function assertMayChange(
  state: ChatState,
  wanted: {
    readonly id: string;
    readonly messageId: string;
    readonly by: string;
    readonly nowMs: number;
  },
): void {
  assertKnown(state, wanted.id);
  if (own(state.participants, wanted.by)?.role === 'admin') return;
  const found = state.recent.find(({ messageId }) => messageId === wanted.messageId);
  if (found !== undefined && found.authorId !== wanted.by) {
    throw new CommandRejected(
      'not-the-author',
      'Only the author or an admin can change a message.',
    );
  }
  if (found === undefined || wanted.nowMs - found.postedAtMs > collabLimits.editWithinMs) {
    throw new CommandRejected('too-late', 'Authors can change a message for five minutes.');
  }
}

function at(ms: number): string {
  return new Date(ms).toISOString();
}
