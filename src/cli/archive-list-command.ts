// `millrace archive list`: which segments are in cold storage.

import { listArchive } from '../bus/archive.ts';
import { archiveOption, archiveSections, openArchive, patternOf } from './archive-option.ts';
import { exitCodes, readArgs, type Command } from './command.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption } from './store-option.ts';
import { writeOut } from './write-out.ts';

const name = 'archive list';

const options = { ...archiveOption, ...jsonOption } as const;

export const archiveListCommand: Command = {
  name,
  summary: 'shows what of the bus is in cold storage, with --json as NDJSON',
  usage: `${name} [<pattern>]`,
  options,
  examples: [`millrace ${name}`, `millrace ${name} 'gbe.events.audit.>' --json`],
  sections: archiveSections,
  async run(context) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const pattern = positionals.length === 0 ? '>' : patternOf(name, positionals);
    const storage = await openArchive(context, values.archive);
    let count = 0;
    for await (const segment of listArchive(storage, pattern)) {
      count += segment.count;
      const { subject, firstStoredAt, lastStoredAt, bytes } = segment;
      await writeOut(
        stdout,
        values.json === true
          ? `${JSON.stringify(segment)}\n`
          : `${paint.bold(subject)}  ${firstStoredAt} to ${lastStoredAt}  ${grouped(segment.count)} messages, ${grouped(bytes)} bytes\n`,
        signal,
      );
    }
    if (values.json !== true) stderr.write(`${grouped(count)} messages\n`);
    return exitCodes.ok;
  },
};
