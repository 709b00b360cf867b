// Schemas of the ids, names and texts of events, commands and requests.

import { z } from 'zod';

/** Bounds of what people write; UTF-8 where it says bytes. */
export const collabLimits = {
  titleCharsMax: 500,
  nameCharsMax: 200,
  messageBytesMax: 131_072,
  /** One line for each tag, whatever was in them. */
  answerBytesMax: 524_288,
  tagsMax: 1_000,
  /** How long authors may edit or delete what they wrote. */
  editWithinMs: 5 * 60_000,
  inviteUsesMax: 10_000,
} as const;

/** Who answers in chats: no person has this id. */
export const botId = 'bot';

/** Of something that has a stream. */
export const streamId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);
/** As `@name` says it. `@none` is nobody. */
export const username = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/)
  .refine((name) => !['none', botId].includes(name.toLowerCase()), 'the name is taken');
/** A moment, as envelopes write it. */
export const timestamp = z.iso.datetime({ offset: true });

/** What every engine can hold: no half of a surrogate pair, no NUL. */
const storable = z
  .string()
  .refine((each) => each.isWellFormed() && !each.includes('\0'), 'the text is not well-formed');

export const title = storable.trim().min(1).max(collabLimits.titleCharsMax);
export const name = storable.trim().min(1).max(collabLimits.nameCharsMax);
/** Raw, as it was written. */
export const value = storable;
export const message = text(collabLimits.messageBytesMax);
export const answer = text(collabLimits.answerBytesMax);

const chatTypes = ['discussion', 'task', 'bug', 'epic'] as const;
const taskTypes = ['task', 'bug', 'epic'] as const;
export const chatType = z.enum(chatTypes);
export const taskType = z.enum(taskTypes);
export const role = z.enum(['admin', 'member']);

export type ChatType = z.infer<typeof chatType>;
export type TaskType = z.infer<typeof taskType>;
export type Role = z.infer<typeof role>;

function text(bytesMax: number): typeof storable {
  return storable
    .min(1)
    .refine((each) => Buffer.byteLength(each) <= bytesMax, `at most ${bytesMax} bytes`);
}

export const tagCommand = z.discriminatedUnion('type', [
  z.object({ type: z.literal('CreateTaskCommand'), taskType, title: value }),
  z.object({ type: z.literal('ChangeStatusCommand'), status: value }),
  z.object({ type: z.literal('AssignUserCommand'), assignee: value }),
  z.object({ type: z.literal('ChangePriorityCommand'), priority: value }),
  z.object({ type: z.literal('SetDueDateCommand'), dueDate: value }),
  z.object({ type: z.literal('ChangeTitleCommand'), title: value }),
  z.object({ type: z.literal('SetSeverityCommand'), severity: value }),
]);

export type TagCommand = z.infer<typeof tagCommand>;

/** Reads an entry whose key comes from a user: an id such as `constructor` must not find an inherited property. */
export function own<Value>(
  record: Readonly<Record<string, Value>>,
  key: string,
): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
