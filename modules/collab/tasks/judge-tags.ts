// Decides what a tag does to a task: an event, a reply line of the bot, or both. Pure.

import { collabLimits, type TagCommand, type TaskType } from '../fields.ts';
import { dueMs } from './due-date.ts';
import {
  assigneeChanged,
  dueChanged,
  priorities,
  priorityChanged,
  severities,
  severityChanged,
  statusChanged,
  taskCreated,
  taskStatuses,
  titleChanged,
  typeChanged,
  type Priority,
  type Severity,
  type TaskStatus,
} from './task-events.ts';

export interface TaskState {
  /** Undefined: the chat is a discussion and has no task. */
  readonly type: TaskType | undefined;
  readonly title: string;
  readonly status: TaskStatus;
  readonly workspaceId: string;
  readonly assignee: string | null;
  /** When the current assignee was set. */
  readonly assignedAtMs: number | null;
  readonly priority: Priority | null;
  readonly due: string | null;
  readonly severity: Severity | null;
  /** Start time by user id. */
  readonly watchers: Readonly<Record<string, number>>;
}

export interface Judge {
  readonly taskId: string;
  readonly workspaceId: string;
  readonly isPublic: boolean;
  readonly by: string;
  readonly timestamp: string;
  /** User ids by name. */
  readonly users: ReadonlyMap<string, string>;
}

export type TaskChange = ReturnType<
  | typeof assigneeChanged
  | typeof dueChanged
  | typeof priorityChanged
  | typeof severityChanged
  | typeof statusChanged
  | typeof taskCreated
  | typeof titleChanged
  | typeof typeChanged
>;

export interface Judgement {
  /** Undefined: the tag is invalid or changes nothing. */
  readonly change?: TaskChange | undefined;
  /** Undefined: the bot does not reply. */
  readonly line?: string | undefined;
}

const typeNames = { task: 'Task', bug: 'Bug', epic: 'Epic' } as const;
const assigneeShape = /^@([A-Za-z0-9._-]+)$/;
const quotedCharsMax = 60;

export function judgeTag(tag: TagCommand, state: TaskState, judge: Judge): Judgement {
  if (tag.type === 'CreateTaskCommand') return judgeType(tag, state, judge);
  const { type } = state;
  // The other tags have no effect in a discussion.
  if (type === undefined) return {};
  const { taskId, workspaceId, by: changedBy, timestamp } = judge;
  const change = { taskId, chatId: taskId, workspaceId, changedBy, timestamp };
  const judged = judges[tag.type] as (
    command: TagCommand,
    task: Task,
    context: Context,
  ) => Judgement;
  return judged(tag, { ...state, type }, { ...judge, change });
}

type Task = TaskState & { readonly type: TaskType };
type Context = Judge & {
  readonly change: Omit<Parameters<typeof statusChanged>[0], 'oldStatus' | 'newStatus'>;
};
type Judges = {
  readonly [Type in Exclude<TagCommand['type'], 'CreateTaskCommand'>]: (
    tag: Extract<TagCommand, { readonly type: Type }>,
    state: Task,
    context: Context,
  ) => Judgement;
};

const judges: Judges = {
  ChangeStatusCommand: ({ status }, { type, status: oldStatus }, { change }) =>
    judgeChoice(
      { field: 'Status', of: ` for ${typeNames[type]}`, given: status, old: oldStatus },
      taskStatuses[type] as readonly TaskStatus[],
      (newStatus) => statusChanged({ ...change, oldStatus, newStatus }),
    ),

  AssignUserCommand({ assignee }, { assignee: oldAssignee }, { change, users }) {
    const name = assigneeShape.exec(assignee)?.[1];
    const clears = assignee === '' || name === 'none';
    if (!clears && name === undefined) return rejected('Invalid assignee format. Use @username');
    const newAssignee = clears ? null : users.get(name ?? '');
    if (newAssignee === undefined) return rejected(`User @${shortened(name ?? '')} not found`);
    return accepted(
      clears ? 'Assignee removed' : `Assigned to: @${name}`,
      newAssignee === oldAssignee
        ? undefined
        : assigneeChanged({ ...change, oldAssignee, newAssignee }),
    );
  },

  ChangePriorityCommand: ({ priority }, { priority: oldPriority }, { change }) =>
    judgeChoice(
      { field: 'Priority', given: priority, old: oldPriority },
      priorities,
      (newPriority) => priorityChanged({ ...change, oldPriority, newPriority }),
    ),

  SetDueDateCommand({ dueDate }, { due: oldDue }, { change }) {
    const newDue = dueDate === '' ? null : dueDate;
    if (newDue !== null && dueMs(newDue) === undefined) {
      return rejected('Invalid date format. Use ISO 8601: YYYY-MM-DD');
    }
    return accepted(
      newDue === null ? 'Due date removed' : `Due date set to ${newDue}`,
      newDue === oldDue ? undefined : dueChanged({ ...change, oldDue, newDue }),
    );
  },

  ChangeTitleCommand({ title: newTitle }, { title: oldTitle }, { change }) {
    if (newTitle === '') return rejected('Title cannot be empty');
    if (newTitle.length > collabLimits.titleCharsMax) return rejected(tooLong);
    return accepted(
      `Title changed to ${newTitle}`,
      newTitle === oldTitle ? undefined : titleChanged({ ...change, newTitle }),
    );
  },

  SetSeverityCommand({ severity }, { type, severity: oldSeverity }, { change }) {
    if (type !== 'bug') return { line: '⚠️ Severity is only applicable to Bugs' };
    return judgeChoice(
      { field: 'Severity', given: severity, old: oldSeverity },
      severities,
      (newSeverity) => severityChanged({ ...change, oldSeverity, newSeverity }),
    );
  },
};

/** The value must be one of the choices; the current value again is accepted without an event. */
function judgeChoice<Choice extends string>(
  { field, given, old, of = '' }: { field: string; given: string; old: string | null; of?: string },
  choices: readonly Choice[],
  toChange: (choice: Choice) => TaskChange,
): Judgement {
  const choice = choices.find((each) => each === given);
  if (choice === undefined) {
    const available = choices.join(', ');
    return rejected(
      `Invalid ${field.toLowerCase()} ${quoted(given)}${of}. Available: ${available}`,
    );
  }
  return accepted(`${field} changed to ${choice}`, choice === old ? undefined : toChange(choice));
}

/** `#task`, `#bug`, `#epic`: creates a task, or changes the type of the existing one. */
function judgeType(
  { taskType, title }: Extract<TagCommand, { readonly type: 'CreateTaskCommand' }>,
  state: TaskState,
  { taskId, workspaceId, isPublic, by, timestamp }: Judge,
): Judgement {
  if (title === '') {
    return rejected(`${typeNames[taskType]} title is required. Usage: #${taskType} <title>`);
  }
  if (title.length > collabLimits.titleCharsMax) return rejected(tooLong);
  const taskIds = { taskId, chatId: taskId, workspaceId };
  const [first] = taskStatuses[taskType];
  if (state.type === undefined) {
    const created = { type: taskType, title, status: first, isPublic, createdBy: by, timestamp };
    return { change: taskCreated({ ...taskIds, ...created }) };
  }
  const change = { ...taskIds, changedBy: by, timestamp };
  if (state.type === taskType) {
    const isSame = title === state.title;
    return { change: isSame ? undefined : titleChanged({ ...change, newTitle: title }) };
  }
  const status = taskStatuses[taskType].find((each) => each === state.status) ?? first;
  const types = { oldType: state.type, newType: taskType };
  return { change: typeChanged({ ...change, ...types, title, status }) };
}

const tooLong = `Title is too long. At most ${collabLimits.titleCharsMax} characters`;

function accepted(line: string, change: TaskChange | undefined): Judgement {
  return { line: `✅ ${line}`, change };
}

function rejected(line: string): Judgement {
  return { line: `❌ ${line}` };
}

function quoted(text: string): string {
  return `'${shortened(text)}'`;
}

const characters = new Intl.Segmenter();

/** Cuts between grapheme clusters, never inside an emoji. */
function shortened(text: string): string {
  if (text.length <= quotedCharsMax) return text;
  let shown = '';
  for (const { segment } of characters.segment(text.slice(0, 2 * quotedCharsMax))) {
    if (shown.length + segment.length > quotedCharsMax) break;
    shown += segment;
  }
  return `${shown}…`;
}
