// The grammar of tags: which lines hold tags, where a tag's value ends, and what is plain text. One pass over
// the message, whatever is in it. What was read once is stored with the version and never read again.

import { collabLimits, type TaskType, type TagCommand } from '../fields.ts';

/** Raised whenever the same message would be read in another way. */
export const tagParserVersion = 1;

export interface ParsedTags {
  /** Known tags in the order of the message, with what was written behind them. */
  readonly commands: readonly TagCommand[];
  /** Everything else, without blank lines. */
  readonly text: string;
  /** Known tags behind the last one that counts. */
  readonly leftOut: number;
}

const lineEnd = /\r\n|\n|\r/;
const name = /^#([a-z][a-z0-9_]*)$/;
const space = /\s/;

/** Known tags: a `#word` that is none of these is text. */
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
    // A value ends where ` #` begins the next tag; every part but the first has lost its sign.
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

/** Undefined: the word behind the sign is no known tag. */
function toCommand(tag: string): TagCommand | undefined {
  const at = tag.search(space);
  const word = at < 0 ? tag : tag.slice(0, at);
  const build = known.get(name.exec(word)?.[1] ?? '');
  return build?.(at < 0 ? '' : tag.slice(at).trim());
}

function creates(taskType: TaskType): (title: string) => TagCommand {
  return (title) => ({ type: 'CreateTaskCommand', taskType, title });
}
