// `millrace archive …`: lists, reads and restores bus messages in cold storage.

import {
  listArchive,
  readArchive,
  restoreArchive,
  type ReadArchiveOptions,
} from '../../bus/archive.ts';
import type { ColdStorage } from '../../bus/cold-storage.ts';
import { validatePattern } from '../../contracts/subject-match.ts';
import {
  defineCommand,
  exitCodes,
  oneArgument,
  printResult,
  usage,
  type Command,
  type CommandContext,
  type HelpSection,
} from '../command.ts';
import { jsonOption, pastTime, wholeNumber } from '../options.ts';
import { storeUrl } from '../stores.ts';
import { grouped } from '../terminal/text.ts';
import { writeOut } from '../terminal/write-out.ts';

const archiveDefault = 'file:.millrace/archive';
const archiveVariable = 'MILLRACE_ARCHIVE';
const busVariable = 'MILLRACE_BUS';

const archiveOption = {
  archive: { type: 'string', value: 'url', summary: `archive (default: ${archiveDefault})` },
} as const;

const rangeOptions = {
  since: {
    type: 'string',
    value: 'time',
    summary: 'only stored since 12h ago, 30d ago, or a date and time',
  },
  until: { type: 'string', value: 'time', summary: 'only stored before this time' },
} as const;

const archiveSections: readonly HelpSection[] = [
  {
    title: 'Archives',
    rows: [
      ['file:<folder>', 'a folder'],
      ['s3://<bucket>/<prefix>', 'a bucket; ?region= and &endpoint= for services other than AWS'],
      ['AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY', 'keys of the bucket, with AWS_SESSION_TOKEN'],
      [archiveVariable, 'environment variable, used if --archive is not given'],
    ],
  },
];

const list = defineCommand({
  name: 'archive list',
  summary: 'lists archived segments of the bus (NDJSON with --json)',
  usage: 'archive list [<pattern>]',
  options: { ...archiveOption, ...jsonOption },
  examples: ['millrace archive list', `millrace archive list 'gbe.events.audit.>' --json`],
  sections: archiveSections,
  async run(context, input) {
    const { stdout, stderr, signal, paint } = context;
    const { values, positionals } = input;
    const pattern = positionals.length === 0 ? '>' : patternOf(input);
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
});

const read = defineCommand({
  name: 'archive read',
  summary: 'prints archived messages as NDJSON, oldest first',
  usage: 'archive read <pattern> [options]',
  options: {
    ...archiveOption,
    ...rangeOptions,
    limit: { type: 'string', value: 'N', summary: 'maximum number of messages' },
  },
  examples: ['millrace archive read gbe.events.audit.change --since 2026-01-01 --limit 100'],
  sections: archiveSections,
  async run(context, input) {
    const { stdout, signal } = context;
    const { values } = input;
    const pattern = patternOf(input);
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
});

const restore = defineCommand({
  name: 'archive restore',
  summary: 'publishes archived messages again',
  usage: 'archive restore <pattern> --to <subject> | --same-subject',
  options: {
    ...archiveOption,
    ...rangeOptions,
    bus: {
      type: 'string',
      value: 'url',
      summary: 'bus (default: the database of the event store)',
    },
    to: {
      type: 'string',
      value: 'subject',
      summary: 'publishes to this subject, which existing consumer groups do not read',
    },
    'same-subject': {
      type: 'boolean',
      summary: 'publishes to the original subjects: consumer groups receive the messages again',
    },
    ...jsonOption,
  },
  examples: [
    'millrace archive restore gbe.events.audit.change --since 30d --to gbe.restored.audit',
    `millrace archive restore 'gbe.tasks.*.terminal' --same-subject`,
  ],
  sections: [
    ...archiveSections,
    {
      title: 'Bus',
      rows: [[busVariable, 'environment variable, used if --bus is not given']],
    },
  ],
  async run(context, input) {
    const { env, paint } = context;
    const { name, values } = input;
    const pattern = patternOf(input);
    const { to: subject } = values;
    if ((subject === undefined) === (values['same-subject'] !== true)) {
      throw usage(`${name} takes --to <subject>, or --same-subject`);
    }
    const storage = await openArchive(context, values.archive);
    const { busUrlOf, openBus } = await import('../../platform/engines/open-bus.ts');
    const named = values.bus ?? (env[busVariable] === '' ? undefined : env[busVariable]);
    const url = busUrlOf({ store: storeUrl(context, undefined), bus: named });
    // Resolves a relative file path against the current directory.
    await using bus = await openBus(storeUrl(context, url));
    const restored = await restoreArchive(bus, storage, pattern, { ...rangeOf(values), subject });
    const { published, duplicates, malformed } = restored;
    const parts = [
      `${paint.green('restored')} ${grouped(published)}`,
      ...(duplicates > 0 ? [`${grouped(duplicates)} duplicates`] : []),
      ...(malformed > 0 ? [`${grouped(malformed)} malformed`] : []),
    ];
    return printResult(context, values, { json: restored, text: parts.join(', ') });
  },
});

export const archiveCommands: readonly Command[] = [list, read, restore];

async function openArchive(
  { cwd, env }: Pick<CommandContext, 'cwd' | 'env'>,
  given: string | undefined,
): Promise<ColdStorage> {
  const { archiveKeysOf, openColdStorage } = await import('../../platform/engines/open-bus.ts');
  const set = env[archiveVariable] === '' ? undefined : env[archiveVariable];
  return openColdStorage(given ?? set ?? archiveDefault, { cwd, keys: archiveKeysOf(env) });
}

function patternOf(input: {
  readonly name: string;
  readonly positionals: readonly string[];
}): string {
  const pattern = oneArgument(input, "subject or pattern, such as 'gbe.events.audit.>'");
  validatePattern(pattern);
  return pattern;
}

function rangeOf(values: {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}): ReadArchiveOptions {
  const nowMs = Date.now();
  const time = (option: string, text: string | undefined): Date | undefined =>
    text === undefined ? undefined : new Date(pastTime(option, text, nowMs));
  return { from: time('since', values.since), to: time('until', values.until) };
}

/** The envelope if the message is JSON, otherwise its bytes. */
function contentOf(data: Uint8Array): object {
  try {
    return { envelope: JSON.parse(Buffer.from(data).toString()) as unknown };
  } catch {
    return { base64: Buffer.from(data).toString('base64') };
  }
}
