// The tag grammar: which lines contain tags, where the value of a tag ends, and what is plain text. Linear in the
// length of the message. The result is stored with the parser version and never parsed again.

import { collabLimits, type TaskType, type TagCommand } from '../fields.ts';

/** Increase it with every change of the grammar. */
export const tagParserVersion = 1;

export interface ParsedTags {
  /** Known tags in order, with their values. */
  readonly commands: readonly TagCommand[];
  /** All other text, without blank lines. */
  readonly text: string;
  /** Number of known tags beyond the limit. */
  readonly leftOut: number;
}

const lineEnd = /\r\n|\n|\r/;
const name = /^#([a-z][a-z0-9_]*)$/;
const space = /\s/;

/** Any other `#word` is text. */
const tags: Readonly<Record<string, (value: string) => TagCommand>> = {
  task: creates('task'),
  bug: creates('bug'),
  epic: creates('epic'),
  status: (status) => ({ type: 'ChangeStatusCommand', status }),
  assignee: (assignee) => ({ type: 'AssignUserCommand', assignee }),
  priority: (priority) => ({ type: 'ChangePriorityCommand', priority }),
  due: (dueDate) => ({ type: 'SetDueDateCommand', dueDate }),
  title: (title) => ({ type: 'ChangeTitleCommand', title }),
  severity: (severity) => ({ type: 'SetSeverityCommand', severity }),
};
const known = new Map(Object.entries(tags));

export function parseTags(content: string): ParsedTags {
  const commands: TagCommand[] = [];
  const text: string[] = [];
  let leftOut = 0;
  for (const line of content.split(lineEnd)) {
    const trimmed = line.trim();
    if (trimmed === '') continue;
    if (!trimmed.startsWith('#')) {
      text.push(line);
      continue;
    }
    const words: string[] = [];
    // A value ends at the next ` #`; splitting removes the `#` from every part but the first.
    for (const [index, part] of trimmed.split(' #').entries()) {
      const tag = index === 0 ? part : `#${part}`;
      const command = toCommand(tag);
      if (command === undefined) words.push(tag.trim());
      else if (commands.length < collabLimits.tagsMax) commands.push(command);
      else leftOut += 1;
    }
    if (words.length > 0) text.push(words.join(' '));
  }
  return { commands, text: text.join('\n'), leftOut };
}

/** Undefined: not a known tag. */
function toCommand(tag: string): TagCommand | undefined {
  const at = tag.search(space);
  const word = at < 0 ? tag : tag.slice(0, at);
  const build = known.get(name.exec(word)?.[1] ?? '');
  return build?.(at < 0 ? '' : tag.slice(at).trim());
}

function creates(taskType: TaskType): (title: string) => TagCommand {
  return (title) => ({ type: 'CreateTaskCommand', taskType, title });
}
