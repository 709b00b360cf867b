// What a tag does to a task, or why not: each tag is judged on its own, over what those before it have done.

import { dueMs } from './due-date.ts';
import { collabLimits, type TaskType, type TagCommand } from '../fields.ts';
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
  /** Undefined: there is no task, its chat is a discussion. */
  readonly type: TaskType | undefined;
  readonly title: string;
  readonly status: TaskStatus;
  readonly workspaceId: string;
  readonly assignee: string | null;
  /** Of the one who has it now. */
  readonly assignedAtMs: number | null;
  readonly priority: Priority | null;
  readonly due: string | null;
  readonly severity: Severity | null;
  /** By user, since when. */
  readonly watchers: Readonly<Record<string, number>>;
}

export interface Judge {
  readonly taskId: string;
  readonly workspaceId: string;
  readonly isPublic: boolean;
  readonly by: string;
  readonly timestamp: string;
  /** By username. */
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
  /** Undefined: nothing happens, or it is so already. */
  readonly change?: TaskChange | undefined;
  /** Undefined: nobody is told. */
  readonly line?: string;
}

const typeNames = { task: 'Task', bug: 'Bug', epic: 'Epic' } as const;
const assigneeShape = /^@([A-Za-z0-9._-]+)$/;
const quotedCharsMax = 60;

export function judgeTag(tag: TagCommand, state: TaskState, judge: Judge): Judgement {
  if (tag.type === 'CreateTaskCommand') return judgeType(tag, state, judge);
  const { type } = state;
  // A discussion has nothing that these could change.
  if (type === undefined) return {};
  const { taskId, workspaceId, by: changedBy, timestamp } = judge;
  const change = { taskId, chatId: taskId, workspaceId, changedBy, timestamp };
  const judged = judges[tag.type] as (each: TagCommand, on: Task, context: Context) => Judgement;
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
  ChangeStatusCommand({ status }, { type, status: oldStatus }, { change }) {
    const known = taskStatuses[type];
    const newStatus = known.find((each) => each === status);
    if (newStatus === undefined) {
      return bad(
        `Invalid status ${quoted(status)} for ${typeNames[type]}. Available: ${known.join(', ')}`,
      );
    }
    return good(
      `Status changed to ${newStatus}`,
      newStatus === oldStatus ? undefined : statusChanged({ ...change, oldStatus, newStatus }),
    );
  },

  AssignUserCommand({ assignee }, { assignee: oldAssignee }, { change, users }) {
    const name = assigneeShape.exec(assignee)?.[1];
    const clears = assignee === '' || name === 'none';
    if (!clears && name === undefined) return bad('Invalid assignee format. Use @username');
    const newAssignee = clears ? null : users.get(name ?? '');
    if (newAssignee === undefined) return bad(`User @${shortened(name ?? '')} not found`);
    return good(
      clears ? 'Assignee removed' : `Assigned to: @${name}`,
      newAssignee === oldAssignee
        ? undefined
        : assigneeChanged({ ...change, oldAssignee, newAssignee }),
    );
  },

  ChangePriorityCommand({ priority }, { priority: oldPriority }, { change }) {
    const newPriority = priorities.find((each) => each === priority);
    if (newPriority === undefined) {
      return bad(`Invalid priority ${quoted(priority)}. Available: ${priorities.join(', ')}`);
    }
    return good(
      `Priority changed to ${newPriority}`,
      newPriority === oldPriority
        ? undefined
        : priorityChanged({ ...change, oldPriority, newPriority }),
    );
  },

  SetDueDateCommand({ dueDate }, { due: oldDue }, { change }) {
    const newDue = dueDate === '' ? null : dueDate;
    if (newDue !== null && dueMs(newDue) === undefined) {
      return bad('Invalid date format. Use ISO 8601: YYYY-MM-DD');
    }
    return good(
      newDue === null ? 'Due date removed' : `Due date set to ${newDue}`,
      newDue === oldDue ? undefined : dueChanged({ ...change, oldDue, newDue }),
    );
  },

  ChangeTitleCommand({ title: newTitle }, { title: oldTitle }, { change }) {
    if (newTitle === '') return bad('Title cannot be empty');
    if (newTitle.length > collabLimits.titleCharsMax) return bad(tooLong);
    return good(
      `Title changed to ${newTitle}`,
      newTitle === oldTitle ? undefined : titleChanged({ ...change, oldTitle, newTitle }),
    );
  },

  SetSeverityCommand({ severity }, { type, severity: oldSeverity }, { change }) {
    if (type !== 'bug') return { line: '⚠️ Severity is only applicable to Bugs' };
    const newSeverity = severities.find((each) => each === severity);
    if (newSeverity === undefined) {
      return bad(`Invalid severity ${quoted(severity)}. Available: ${severities.join(', ')}`);
    }
    return good(
      `Severity changed to ${newSeverity}`,
      newSeverity === oldSeverity
        ? undefined
        : severityChanged({ ...change, oldSeverity, newSeverity }),
    );
  },
};

/** `#task`, `#bug`, `#epic`: a new task, or another type of the one that is there. */
function judgeType(
  { taskType, title }: Extract<TagCommand, { readonly type: 'CreateTaskCommand' }>,
  state: TaskState,
  { taskId, workspaceId, isPublic, by, timestamp }: Judge,
): Judgement {
  if (title === '') {
    return bad(`${typeNames[taskType]} title is required. Usage: #${taskType} <title>`);
  }
  if (title.length > collabLimits.titleCharsMax) return bad(tooLong);
  const place = { taskId, chatId: taskId, workspaceId };
  const [first] = taskStatuses[taskType];
  if (state.type === undefined) {
    const created = { type: taskType, title, status: first, isPublic, createdBy: by, timestamp };
    return { change: taskCreated({ ...place, ...created }) };
  }
  const change = { ...place, changedBy: by, timestamp };
  if (state.type === taskType) {
    const { title: oldTitle } = state;
    const isSame = title === oldTitle;
    return { change: isSame ? undefined : titleChanged({ ...change, oldTitle, newTitle: title }) };
  }
  const status = taskStatuses[taskType].find((each) => each === state.status) ?? first;
  const types = { oldType: state.type, newType: taskType };
  return { change: typeChanged({ ...change, ...types, title, status }) };
}

const tooLong = `Title is too long. At most ${collabLimits.titleCharsMax} characters`;

function good(line: string, change: TaskChange | undefined): Judgement {
  return { line: `✅ ${line}`, change };
}

function bad(line: string): Judgement {
  return { line: `❌ ${line}` };
}

function quoted(text: string): string {
  return `'${shortened(text)}'`;
}

const characters = new Intl.Segmenter();

/** By whole characters: half of an emoji is none. */
function shortened(text: string): string {
  if (text.length <= quotedCharsMax) return text;
  let shown = '';
  for (const { segment } of characters.segment(text.slice(0, 2 * quotedCharsMax))) {
    if (shown.length + segment.length > quotedCharsMax) break;
    shown += segment;
  }
  return `${shown}…`;
}
