// What a tag asks for, as it is recorded: the value is what was written, and is judged by the task.

import { z } from 'zod';
import { taskType, value } from './fields.ts';

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
