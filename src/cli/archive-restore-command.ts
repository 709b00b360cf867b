// `millrace archive restore`: archived messages onto the bus again.

import { restoreArchive } from '../bus/archive.ts';
import {
  archiveOption,
  archiveRange,
  archiveSections,
  openArchive,
  patternOf,
  rangeOf,
} from './archive-option.ts';
import { exitCodes, readArgs, usage, type Command } from './command.ts';
import { grouped } from './progress-bar.ts';
import { jsonOption, storeUrl } from './store-option.ts';

const name = 'archive restore';
const variable = 'MILLRACE_BUS';

const options = {
  ...archiveOption,
  ...archiveRange,
  bus: { type: 'string', value: 'url', summary: "the bus (the store's file)" },
  to: {
    type: 'string',
    value: 'subject',
    summary: 'onto this subject, which no group of the old one reads',
  },
  'same-subject': { type: 'boolean', summary: 'onto their own: groups get them again' },
  ...jsonOption,
} as const;

export const archiveRestoreCommand: Command = {
  name,
  summary: 'publishes archived messages again',
  usage: `${name} <pattern> --to <subject> | --same-subject`,
  options,
  examples: [
    `millrace ${name} gbe.events.audit.change --since 30d --to gbe.restored.audit`,
    `millrace ${name} 'gbe.tasks.*.terminal' --same-subject`,
  ],
  sections: [
    ...archiveSections,
    { title: 'Bus', rows: [[variable, 'the environment variable that stands in for --bus']] },
  ],
  async run(context) {
    const { stdout, env, paint } = context;
    const { values, positionals } = readArgs({ name, args: context.args }, options);
    const pattern = patternOf(name, positionals);
    const { to: subject } = values;
    if ((subject === undefined) === (values['same-subject'] !== true)) {
      throw usage(`${name} takes --to <subject>, or --same-subject`);
    }
    const storage = await openArchive(context, values.archive);
    const { busUrlOf, openBus } = await import('../platform/engines/open-bus.ts');
    const named = values.bus ?? (env[variable] === '' ? undefined : env[variable]);
    const url = busUrlOf({ store: storeUrl(context, undefined), bus: named });
    // A file's path counts from where the command runs.
    await using bus = await openBus(storeUrl(context, url));
    const restored = await restoreArchive(bus, storage, pattern, { ...rangeOf(values), subject });
    const { published, duplicates, malformed } = restored;
    const more = [
      ...(duplicates > 0 ? [`${grouped(duplicates)} were there`] : []),
      ...(malformed > 0 ? [`${grouped(malformed)} are no messages`] : []),
    ];
    stdout.write(
      values.json === true
        ? `${JSON.stringify(restored)}\n`
        : `${paint.green('restored')} ${[grouped(published), ...more].join(', ')}\n`,
    );
    return exitCodes.ok;
  },
};
