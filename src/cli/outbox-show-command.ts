// `millrace outbox show`: everything that the ledger knows of one message.

import { MillraceError } from '../foundation/error.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { openOutbox, statusText } from './open-outbox.ts';
import { jsonOption, storeOption, outboxSections } from './store-option.ts';

const name = 'outbox show';
const options = { ...storeOption, ...jsonOption } as const;

export const outboxShowCommand: Command = {
  name,
  summary: 'shows a message of the outbox with its payload, headers and last error',
  usage: `${name} <id>`,
  options,
  examples: [`millrace ${name} 01932f0c-6f2e-7c3a-9b1d-2f6a1c0e5d77 --json`],
  sections: outboxSections,
  async run(context) {
    const { stdout, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const [id, ...rest] = positionals;
    if (id === undefined || rest.length > 0) throw usage(`${name} takes one id`);
    await using ledger = await openOutbox(context, values.store);
    const message = await ledger.find(id);
    if (message === undefined) {
      throw new MillraceError('OUTBOX_UNKNOWN', `the outbox has no message '${id}'`, {
        details: { id },
      });
    }
    if (values.json === true) {
      stdout.write(`${JSON.stringify(message, null, 2)}\n`);
      return exitCodes.ok;
    }
    const lines = Object.entries({ ...message, status: statusText(message, paint) })
      .filter(([, value]) => value !== undefined)
      .map(([title, value]) => `${paint.cyan(title.padEnd(16))}${shown(value)}`);
    stdout.write(`${lines.join('\n')}\n`);
    return exitCodes.ok;
  },
};

function shown(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' ? value : JSON.stringify(value);
}
