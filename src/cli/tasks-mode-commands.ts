// `millrace tasks pause`, `tasks resume`, `tasks drain`: whether a type takes jobs, and gives them out.

import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { outboxOnRecord } from './on-record.ts';
import { openFolderTasks, tasksOption, tasksSections } from './open-tasks.ts';
import { jsonOption, storeOption } from './store-option.ts';

const options = { ...tasksOption, ...storeOption, ...jsonOption } as const;

function modeCommand(verb: 'pause' | 'resume' | 'drain', summary: string): Command {
  const name = `tasks ${verb}`;
  return {
    name,
    summary,
    usage: `${name} <type>`,
    options,
    examples: [`millrace ${name} email-send`],
    sections: tasksSections,
    async run(context) {
      const { values, positionals } = readArgs({ name, args: context.args }, options);
      const [type, ...rest] = positionals;
      if (type === undefined || rest.length > 0) throw usage(`${name} takes one type`);
      await using opened = await openFolderTasks(context, values.tasks);
      const { tasks } = opened;
      const deed = { action: `task.${verb}`, target: type, given: values.store };
      await outboxOnRecord(context, deed, () => tasks[verb](type));
      const mode = (await tasks.modes())[type] ?? 'open';
      const text = `${type} is ${mode}`;
      context.stdout.write(
        values.json === true ? `${JSON.stringify({ type, mode })}\n` : `${text}\n`,
      );
      return exitCodes.ok;
    },
  };
}

export const tasksPauseCommand = modeCommand(
  'pause',
  'no worker gets a job of the type; new ones are taken',
);
export const tasksResumeCommand = modeCommand('resume', 'undoes pause and drain');
export const tasksDrainCommand = modeCommand(
  'drain',
  'takes no new jobs of the type; what is there is worked off',
);
