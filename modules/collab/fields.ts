// Schemas of the ids, names and texts of events, commands and requests.

import { z } from 'zod';

/** Limits of user input; bytes are counted in UTF-8. */
export const collabLimits = {
  titleCharsMax: 500,
  nameCharsMax: 200,
  messageBytesMax: 131_072,
  /** Reply lines of the bot may repeat a title, one line per tag. */
  answerBytesMax: 524_288,
  tagsMax: 1_000,
  /** How long authors may edit or delete their messages. */
  editWithinMs: 5 * 60_000,
  inviteUsesMax: 10_000,
} as const;

/** The author of the replies to tags; reserved, so no user has this id. */
export const botId = 'bot';

/** The id of an aggregate. */
export const streamId = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/);
/** The name in `@name`. `@none` clears an assignee and is reserved. */
export const username = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/)
  .refine((name) => !['none', botId].includes(name.toLowerCase()), 'the name is reserved');
export const timestamp = z.iso.datetime({ offset: true });

/** Text that every engine can store: no lone surrogates, no NUL. */
const storable = z
  .string()
  .refine(
    (string) => string.isWellFormed() && !string.includes('\0'),
    'the text is not well-formed',
  );

export const title = storable.trim().min(1).max(collabLimits.titleCharsMax);
export const name = storable.trim().min(1).max(collabLimits.nameCharsMax);
/** The value of a tag as the user wrote it. */
export const value = storable;
export const message = text(collabLimits.messageBytesMax);
export const answer = text(collabLimits.answerBytesMax);

export const chatType = z.enum(['discussion', 'task', 'bug', 'epic']);
export const taskType = z.enum(['task', 'bug', 'epic']);
export const role = z.enum(['admin', 'member']);

export type ChatType = z.infer<typeof chatType>;
export type TaskType = z.infer<typeof taskType>;
export type Role = z.infer<typeof role>;

function text(bytesMax: number): typeof storable {
  return storable
    .min(1)
    .refine((string) => Buffer.byteLength(string) <= bytesMax, `at most ${bytesMax} bytes`);
}

/** The command in a tag, with the value as it was written; the task validates it. */
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
