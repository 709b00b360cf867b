// `millrace archive read`: archived messages, each segment checked.

import { readArchive } from '../bus/archive.ts';
import {
  archiveOption,
  archiveRange,
  archiveSections,
  openArchive,
  patternOf,
  rangeOf,
} from './archive-option.ts';
import { exitCodes, readArgs, type Command } from './command.ts';
import { wholeNumber } from './option-values.ts';
import { writeOut } from './write-out.ts';

const name = 'archive read';

const options = {
  ...archiveOption,
  ...archiveRange,
  limit: { type: 'string', value: 'N', summary: 'at most so many (all)' },
} as const;

export const archiveReadCommand: Command = {
  name,
  summary: 'prints archived messages as NDJSON, oldest first',
  usage: `${name} <pattern> [options]`,
  options,
  examples: [`millrace ${name} gbe.events.audit.change --since 2026-01-01 --limit 100`],
  sections: archiveSections,
  async run(context) {
    const { stdout, signal } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const pattern = patternOf(name, positionals);
    const limit = wholeNumber('limit', values.limit) ?? Number.POSITIVE_INFINITY;
    const storage = await openArchive(context, values.archive);
    let count = 0;
    for await (const message of readArchive(storage, pattern, rangeOf(values))) {
      if (count === limit) break;
      count += 1;
      const { subject, sequence, storedAt, data } = message;
      const line = { subject, sequence, storedAt, ...contentOf(data) };
      await writeOut(stdout, `${JSON.stringify(line)}\n`, signal);
    }
    return exitCodes.ok;
  },
};

/** The envelope where it is JSON, else the bytes. */
function contentOf(data: Uint8Array): object {
  try {
    return { envelope: JSON.parse(Buffer.from(data).toString()) as unknown };
  } catch {
    return { base64: Buffer.from(data).toString('base64') };
  }
}
