// `millrace tasks enqueue`: a job, or one for each line of a file.

import type { NewTask } from '../tasks/tasks.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { openFolderTasks, tasksOption, tasksSections } from './open-tasks.ts';
import { durationSeconds, pairs, wholeNumber } from './option-values.ts';
import { jsonOption } from './store-option.ts';

const name = 'tasks enqueue';
const batchMax = 500;
const options = {
  ...tasksOption,
  tenant: { type: 'string', value: 'key', summary: 'of this tenant' },
  key: {
    type: 'string',
    value: 'text',
    summary: 'of two with the same key the second is not stored',
  },
  priority: { type: 'string', value: 'N', summary: '0 to 9, the highest first' },
  delay: { type: 'string', value: 'time', summary: 'due so much later: 30s, 15m, 12h' },
  label: { type: 'string', value: 'name=value', multiple: true, summary: 'to find it by' },
  lines: { type: 'boolean', summary: 'a payload for each line of the standard input' },
  ...jsonOption,
} as const;

export const tasksEnqueueCommand: Command = {
  name,
  summary: 'enqueues a job, or one for each line of the standard input',
  usage: `${name} <type> (<payload> | --lines)`,
  options,
  examples: [
    `millrace ${name} email-send '{"to":"c-1"}' --key welcome-c-1`,
    `millrace ${name} report-gen '{}' --delay 12h --priority 9`,
    `millrace ${name} email-send --lines < receivers.ndjson`,
  ],
  sections: tasksSections,
  async run(context) {
    const { stdout, stderr, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const [type, given, ...rest] = positionals;
    const isLines = values.lines === true;
    if (type === undefined || rest.length > 0 || (given === undefined) !== isLines) {
      throw usage(`${name} takes a type and a payload (JSON), or --lines`);
    }
    if (isLines && values.key !== undefined) throw usage('--key is for one job, not for --lines');
    const common: Omit<NewTask, 'payload'> = {
      type,
      tenant: values.tenant,
      key: values.key,
      priority: wholeNumber('priority', values.priority),
      delayMs:
        values.delay === undefined ? undefined : durationSeconds('delay', values.delay) * 1_000,
      labels: values.label === undefined ? undefined : pairs('label', values.label),
    };
    await using opened = await openFolderTasks(context, values.tasks);
    const isJson = values.json === true;
    if (given !== undefined) {
      const made = await opened.tasks.enqueue({ ...common, payload: payloadOf(given) });
      const word = made.isDuplicate ? paint.dim('was there') : paint.green('enqueued');
      stdout.write(isJson ? `${JSON.stringify(made)}\n` : `${word} ${made.id}\n`);
      return exitCodes.ok;
    }
    let enqueued = 0;
    let batch: NewTask[] = [];
    const flush = async (): Promise<void> => {
      enqueued += (await opened.tasks.enqueueMany(batch)).length;
      batch = [];
      if (context.isTTY) stderr.write(`\r${enqueued} enqueued`);
    };
    for await (const line of linesOf(context.stdin())) {
      if (line.trim() === '') continue;
      batch.push({ ...common, payload: payloadOf(line) });
      if (batch.length === batchMax) await flush();
    }
    await flush();
    if (context.isTTY) stderr.write('\n');
    stdout.write(
      isJson ? `${JSON.stringify({ enqueued })}\n` : `${paint.green('enqueued')} ${enqueued}\n`,
    );
    return exitCodes.ok;
  },
};

function payloadOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw usage(`the payload is no JSON: ${text.slice(0, 60)}`, { cause: error });
  }
}

async function* linesOf(input: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const part of input) {
    rest += typeof part === 'string' ? part : decoder.decode(part, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest;
}
